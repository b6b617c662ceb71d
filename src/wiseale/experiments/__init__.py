"""Many runs at once, and what is made of them together."""
