"""Records episodes of a saved policy, to train from with examples.train_offline.

    python -m examples.record --logdir=logs/sac_Pendulum-v1_0
    python -m examples.record --policy=FOLDER --env=Pendulum-v1 --num_episodes=250
    python -m examples.record --logdir=logs/sac_Pendulum-v1_0 --replay

With --replay it records no new episodes: it copies the frames of the run's replay
buffer, those that its policies collected while they learned, from its last checkpoint.

It writes logs/recordings/ENVIRONMENT/RUN.tfrecord, where training looks for data, or
RUN_replay.tfrecord; --output names another file. A file that exists stays, unless
--overwrite is given: then it is replaced when the recording is complete.

The file is a TFRecord file in TF-Agents' format, with the spec of its frames beside it;
see tfrl.utils.example_encoding_dataset, and tfrl.datasets.load_recordings.
"""

from tfrl.command import cli, record

record.define_flags()

if __name__ == "__main__":
    cli.start(record.main)
