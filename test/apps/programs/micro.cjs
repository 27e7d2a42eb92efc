module.exports = () => `hello from micro, pid ${process.pid}`
