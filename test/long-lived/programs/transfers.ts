// Slow uploads, downloads and event streams. A download and a stream take as long as their query says.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

const EVERY_MS = 100
const CHUNK = Buffer.alloc(8192, '.')

const server = createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(String(request.url), 'http://localhost')
  const chunks = Number(searchParams.get('ms')) / EVERY_MS
  if (pathname === '/upload') return response.end(`${await countBytes(request)} bytes`)
  if (pathname === '/download') return await send(response, chunks, () => CHUNK)
  if (pathname === '/events')
    return await send(response.setHeader('content-type', 'text/event-stream'), chunks,
      (n) => `id: ${n}\ndata: ${n}\n\n`)
  response.end(`pid ${process.pid}`)
})
server.requestTimeout = 0
server.listen(process.env.PORT)

async function countBytes (request: IncomingMessage) {
  let bytes = 0
  try {
    for await (const chunk of request) bytes += chunk.length
  } catch (error) {
    // ECONNRESET: it was cut.
    console.error(String(error))
  }
  return bytes
}

async function send (response: ServerResponse, chunks: number, chunkOf: (n: number) => string | Buffer) {
  for (let n = 0; n < chunks && !response.destroyed; n++) {
    response.write(chunkOf(n))
    await wait(EVERY_MS)
  }
  response.end('end')
}
