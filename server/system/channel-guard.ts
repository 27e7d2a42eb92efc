import { StringDecoder } from 'node:string_decoder'
import { attempt, errorText } from '../errors.ts'
import type { ChildProcess } from 'node:child_process'
import type { EventEmitter } from 'node:events'

/** what has come along */
type Handle = { close: () => void } | null | undefined

/** A message of Node's own, of which any field may be anything. `msg`: what a handle belongs to. */
type InternalMessage = { cmd?: unknown, act?: unknown, type?: unknown, msg?: InternalMessage }

/** The longest line that is kept in memory until it is whole: above all a list of files that a worker has loaded. */
const MAX_LINE_CHARS = 4 * 1024 * 1024

/**
 * Stands between the IPC channel of a child and everything that listens to it, Node itself included: Node trusts the
 * other end, and throws in this process at one message that makes no sense to it. Whatever code runs in the child can
 * send anything there.
 */
export function guardChannel (child: ChildProcess, { isExpected, isHandleExpected = () => false, onInvalidMessage }: {
  /** whether somebody here listens to this message of Node's own */
  isExpected: (message: InternalMessage) => boolean,
  /** whether anybody wants what comes along with this one */
  isHandleExpected?: (message: InternalMessage) => boolean,
  /** of each message that was dropped */
  onInvalidMessage: (reason: string) => void
}) {
  const { emit }: EventEmitter = child
  guardReading(child, onInvalidMessage)

  child.emit = function (...args: [name: unknown, ...unknown[]]) {
    if (args[0] !== 'internalMessage') return Reflect.apply(emit, child, args)
    try {
      return takeMessage(args[1] as InternalMessage, args[2] as Handle)
    } catch (error) {
      onInvalidMessage(`a message that Node cannot take: ${errorText(error)}`)
      return true
    }
  }

  function takeMessage (message: InternalMessage, handle: Handle): boolean {
    const { cmd } = message
    if (cmd === 'NODE_HANDLE')
      return isHandleExpected(message)
        ? emit.call(child, 'internalMessage', message, handle)
        : refuseHandle(message, handle)
    if (isAnswer(cmd) ? Array.isArray(child._handleQueue) : isExpected(message))
      return emit.call(child, 'internalMessage', message)
    onInvalidMessage(
      `a message of Node's own that nobody expects: ${String(cmd).slice(0, 50)} ${
        String(message.act ?? '').slice(0, 50)
      }`
    )
    return true
  }

  /** Closes it, as nobody here would ever do. */
  function refuseHandle (message: InternalMessage, handle: Handle): boolean {
    handle?.close()
    child.send({ cmd: 'NODE_HANDLE_ACK' }, undefined, undefined, () => {})
    const { msg } = message
    if (msg && String(msg.cmd).startsWith('NODE_')) return takeMessage(msg, null)
    return msg === undefined || emit.call(child, 'message', msg)
  }
}

/** `cmd`: of the acknowledgement of a handle, which Node expects only after it has sent one */
function isAnswer (cmd: unknown) {
  return cmd === 'NODE_HANDLE_ACK' || cmd === 'NODE_HANDLE_NACK'
}

/** What is no JSON, or has no end, is left out; the lines behind it are read again. */
function guardReading (child: ChildProcess, onInvalidMessage: (reason: string) => void) {
  const channel = bySymbol(child, 'kChannelHandle')?.value
  const onread = channel?.onread
  const [rest, decoder] = ['kJSONBuffer', 'kStringDecoder'].map((name) => channel && bySymbol(channel, name)?.key)
  // One of the internals that are used here is another one in this version of Node.
  if (typeof onread !== 'function' || rest === undefined || decoder === undefined) return

  // Node alone knows how much of a buffer it has read: what is behind that, from 24 on, is of an earlier message.
  const ours = new StringDecoder()
  let text = ''
  channel[decoder] = { write: (bytes: Buffer) => (text = ours.write(bytes)) }

  channel.onread = function () {
    const before = channel[rest]
    text = ''
    try {
      onread.apply(channel, arguments)
      if (channel[rest].length <= MAX_LINE_CHARS) return
      onInvalidMessage(`a message of more than ${MAX_LINE_CHARS} characters`)
      channel[rest] = ''
    } catch (error) {
      onInvalidMessage(`a message that is no JSON: ${errorText(error)}`)
      channel[rest] = readBehind(before + text)
    }
  }

  /** `text`: in which Node has stopped at a line. Returns a line that has no end yet. */
  function readBehind (text: string): string {
    const lines = text.split('\n')
    const open = String(lines.pop())
    const bad = lines.findIndex((line) => parseLine(line) === null)
    // Where all of them can be read, they have been.
    const unread = bad === -1 ? [] : lines.slice(bad + 1)
    for (const message of unread.map(parseLine)) {
      if (message === null) onInvalidMessage('a message that is no JSON')
      else process.nextTick(() =>
          child.emit(String(message.value?.cmd).startsWith('NODE_') ? 'internalMessage' : 'message', message.value)
        )
    }
    return open
  }
}

/** Null: it is no JSON */
function parseLine (line: string): { value: InternalMessage } | null {
  return attempt(() => ({ value: JSON.parse(line) }))
}

function bySymbol (object: object, description: string) {
  const key = Object.getOwnPropertySymbols(object).find((symbol) => symbol.description === description)
  return key === undefined ? null : { key, value: Reflect.get(object, key) }
}
