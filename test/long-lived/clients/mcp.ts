import { errorText } from '../../../server/errors.ts'
import { importFrom, soon } from './installed.ts'
import type { Joining, Session } from '../programs.ts'

/** A session of streamable HTTP: each request has its id, and the worker that does not know it says so. */
export async function openMcpSession ({ port, folder, number, onLost }: Joining): Promise<Session> {
  const [{ Client }, { StreamableHTTPClientTransport }] = await Promise.all([
    importFrom(folder, '@modelcontextprotocol/sdk/client/index.js'),
    importFrom(folder, '@modelcontextprotocol/sdk/client/streamableHttp.js')
  ])
  const client = new Client({ name: `client ${number}`, version: '1.0.0' })
  client.onerror = () => {}
  await soon(client.connect(new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/mcp`))), 'session')
  return { async ask () {
    try {
      const { content: [{ text }] } = await soon<{ content: { text: string }[] }>(
        client.callTool({ name: 'echo', arguments: { message: `hello ${number}` } }),
        'answer'
      )
      if (!text.includes(`hello ${number}`)) throw new Error(`answered ${text}`)
    } catch (error) {
      if (/session/i.test(errorText(error))) onLost(errorText(error))
      throw error
    }
  }, close: () => {
    client.close().catch(() => {})
  } }
}
