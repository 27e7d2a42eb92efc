import { emitKeypressEvents } from 'node:readline'

/**
 * The keys of a terminal, one by one, as they are pressed. `onKey`: gets a name such as q, up, ctrl+c; `onEnd`: the
 * terminal has gone
 */
export function createKeyboard (stdin: NodeJS.ReadStream,
  { onKey, onEnd }: { onKey: (name: string) => void, onEnd: () => void })
{
  return { open () {
    emitKeypressEvents(stdin)
    stdin.setRawMode(true)
    stdin.on('keypress', pressKey).on('end', onEnd).on('error', onEnd)
    stdin.resume()
  }, close () {
    stdin.off('keypress', pressKey).off('end', onEnd)
    try {
      stdin.setRawMode(false)
    } catch {
      // EIO: the terminal has gone.
    }
    stdin.pause()
  } }

  /** As node:readline has it. */
  function pressKey (_: string | undefined, { name, ctrl }: { name?: string, ctrl?: boolean }) {
    onKey(ctrl ? `ctrl+${name}` : String(name))
  }
}
