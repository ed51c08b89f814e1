"""What runs inside the sandbox: a program, or a program's tests. Standard library only; `main` says how it works."""
