import { eventHandler } from 'h3'

export default eventHandler(() => `hello from nitro, pid ${process.pid}`)
