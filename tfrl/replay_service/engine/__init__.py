"""What runs in the server's process: NumPy alone, and never TensorFlow."""
