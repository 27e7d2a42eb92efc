import http from 'node:http'
import { TOKEN } from '../../support/admin.ts'
import type { Job } from './measure.ts'

const VISITS = 5

/** Asks for a page as a browser does. Its CPU time includes that of the client, which does next to nothing. */
export function visitPage ({ port }: { port: number }, path: string): Job {
  let bytes = 0
  return { times: VISITS, bytes: () => bytes, async run () {
    for (let visit = 0; visit < VISITS; visit++) bytes = await bytesOf(port, path)
  } }
}

/** As they go over the network. */
function bytesOf (port: number, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    http.get({ port, host: '127.0.0.1', path,
      headers: { authorization: `Bearer ${TOKEN}`, accept: '*/*', 'accept-encoding': 'gzip' } }, (answer) => {
      let bytes = 0
      answer.on('data', (chunk) => {
        bytes += chunk.length
      }).on('error', reject)
      answer.on('end',
        () => answer.statusCode === 200 ? resolve(bytes) : reject(new Error(`${path} answered ${answer.statusCode}`)))
    }).on('error', reject)
  })
}
