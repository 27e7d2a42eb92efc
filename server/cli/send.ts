import { DeckError, errorText } from '../errors.ts'
import { checkedId, misuse } from './usage.ts'
import type { Context } from './commands.ts'

const SHOWN_CHARS = 30

export async function sendCommand ({ api, options, answer }: Context, type: string, text?: string) {
  const message = { type, ...(text !== undefined && { data: parsedData(text) }) }
  const path = options.worker === undefined ? '/messages' : `/workers/${checkedId('--worker', options.worker)}/messages`
  const sent = await api.post<{ workers: number[] }>(path, message)
  if (sent.workers.length === 0) throw new DeckError('not-possible', 'send: no worker is ready')
  const ids = sent.workers.map(Number).join(', ')
  answer(sent, () => `sent to ${sent.workers.length === 1 ? 'worker' : 'workers'} ${ids}`)
}

function parsedData (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw misuse('send', 'JSON', whereWrong(text, errorText(error)), { cause: error })
  }
}

/** `reason`: from V8; where it has no position, it quotes the place */
function whereWrong (text: string, reason: string) {
  const at = Number(/ at position (\d+)/.exec(reason)?.[1] ?? text.length)
  if (at < text.length) return `${JSON.stringify(text.slice(at, at + SHOWN_CHARS))} at position ${at}: ${reason}`
  return `${JSON.stringify(text.slice(0, SHOWN_CHARS))}${text.length > SHOWN_CHARS ? '…' : ''}: ${reason}`
}
