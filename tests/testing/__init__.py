"""What authors call in their tests."""
