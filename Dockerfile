# tfrl on a CPU: docker build -t tfrl . && docker run --rm tfrl train dqn
# Checked by hadolint, and not built yet.
FROM python:3.12-slim-bookworm

RUN useradd --create-home --uid 1000 tfrl
WORKDIR /home/tfrl
COPY pyproject.toml README.md LICENSE /source/
COPY tfrl /source/tfrl
RUN pip install --no-cache-dir /source

USER 1000
ENTRYPOINT ["tfrl"]
CMD ["--help"]
