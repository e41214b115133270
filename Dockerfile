# The command tfrl in a container, on the CPU:
#
#   docker build -t tfrl .
#   docker run --rm -v "$PWD/logs:/home/tfrl/logs" tfrl train dqn --env=CartPole-v1
#
# hadolint has checked this file; no image has been built from it yet.
FROM python:3.12-slim
COPY pyproject.toml README.md LICENSE /source/
COPY tfrl /source/tfrl
RUN pip install --no-cache-dir "/source[atari,minigrid,mujoco]" \
    && rm -r /source \
    && useradd --uid 1000 --create-home tfrl
USER 1000
WORKDIR /home/tfrl
RUN mkdir logs
ENTRYPOINT ["tfrl"]
CMD ["--help"]
