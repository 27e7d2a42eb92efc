import { once } from 'node:events'
import http from 'node:http'
import { TOKEN, type Admin } from './admin.ts'
import type { TestContext } from 'node:test'

/** Opens a stream of server-sent events. `headers`: undefined: without that one */
export async function openFeed (t: TestContext, { url }: Pick<Admin, 'url'>, path: string,
  headers: Record<string, string | undefined> = {})
{
  const given = Object.entries({ Authorization: `Bearer ${TOKEN}`, ...headers }).filter(([, value]) =>
    value !== undefined
  )
  const req = http.get(url + path, { agent: false, headers: Object.fromEntries(given) })
  t.after(() => req.destroy())
  req.on('error', () => {})
  const [res] = await once(req, 'response') as [http.IncomingMessage]
  let text = ''
  res.setEncoding('utf8').on('data', (chunk) => {
    text += chunk
  }).on('error', () => {})
  const ended = once(res, 'close')
  // ECONNRESET, when the test ends before the answer does.
  ended.catch(() => {})
  const until = async (isSo: () => boolean) => {
    while (!isSo())
      await Promise.race([once(res, 'data'), ended.then(() => {
        throw new Error('the feed has ended')
      })])
  }
  await until(() => text.startsWith('retry: 3000\n\n'))

  return {
    headers: res.headers,
    ended,
    until,
    text: () => text,
    /** What has come so far, whole. */
    blocks: () => text.split('\n\n').slice(0, -1),
    close: () => req.destroy(),
    stopReading: () => res.pause(),
    goOnReading: () => res.resume()
  }
}
