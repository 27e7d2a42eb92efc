import { importFrom, soon } from './installed.ts'
import type { Joining, Session } from '../programs.ts'

const EDITORS = 2

/** Two editors of a document, one of whom comes later: each sees what the other writes. */
export async function joinDocument ({ port, folder, number, onLost }: Joining): Promise<Session> {
  const [{ HocuspocusProvider, HocuspocusProviderWebsocket }, { Doc }, { default: WebSocket }] = await Promise.all(
    ['@hocuspocus/provider', 'yjs', 'ws'].map((name) => importFrom(folder, name))
  )
  const name = `document-${number}`
  const editors: Awaited<ReturnType<typeof open>>[] = []
  for (let n = 0; n < EDITORS; n++) editors.push(await open())
  let asked = 0
  return { async ask () {
    const [writer, reader] = asked++ % 2 === 0 ? editors : editors.toReversed()
    const seen = new Promise((resolve) => reader.document.once('update', resolve))
    writer.document.getMap('content').set('asked', asked)
    await soon(seen, 'change in the other editor')
  }, close () {
    for (const { provider, websocket } of editors) {
      websocket.off('close')
      provider.destroy()
      websocket.destroy()
    }
  } }

  async function open () {
    const document = new Doc()
    const websocket = new HocuspocusProviderWebsocket({ url: `ws://127.0.0.1:${port}`, WebSocketPolyfill: WebSocket,
      maxAttempts: 1 })
    const provider = new HocuspocusProvider({ websocketProvider: websocket, document, name })
    provider.attach()
    await soon(new Promise((resolve) => provider.on('synced', resolve)), 'document')
    websocket.on('close', ({ event }: { event?: { code: number } }) => onLost(`closed with ${event?.code}`))
    return { document, provider, websocket }
  }
}
