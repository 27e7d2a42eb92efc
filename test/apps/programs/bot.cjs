setInterval(() => console.log(`tick, pid ${process.pid}`), 100)
