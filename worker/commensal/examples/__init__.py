"""Training scripts to start from; `commensal demo` runs them. Nothing here is imported: each file is a program of its own."""
