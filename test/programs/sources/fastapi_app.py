import os

from fastapi import FastAPI

app = FastAPI()


@app.get('/')
def hello():
    return f'hello from fastapi, pid {os.getpid()}'
