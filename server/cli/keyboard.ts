import { emitKeypressEvents } from 'node:readline'

// The keys of a terminal, one by one, as they are pressed.

/** As node:readline has it. */
type Key = { name?: string, sequence?: string, ctrl?: boolean, meta?: boolean }
/** `name`: such as q, G, up, ctrl+c; `text`: what was typed, where it is text */
type OnKey = (key: { name: string, text: string }) => void

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/** `stdin`: a terminal; `onEnd`: the terminal has gone */
export function createKeyboard (stdin: NodeJS.ReadStream,
  { onKey, onPasted, onEnd }: { onKey: OnKey, onPasted: (text: string) => void, onEnd: () => void })
{
  /** what was pasted so far: its keys are no commands */
  let pasted: string | null = null
  let isOpen = false

  return { open () {
    isOpen = true
    emitKeypressEvents(stdin)
    stdin.setRawMode(true)
    stdin.on('keypress', pressKey).on('end', onEnd).on('error', onEnd)
    stdin.resume()
  }, close () {
    if (!isOpen) return
    isOpen = false
    stdin.off('keypress', pressKey).off('end', onEnd)
    try {
      stdin.setRawMode(false)
    } catch {
      // EIO: the terminal has gone.
    }
    stdin.pause()
  } }

  function pressKey (typed: string | undefined, key: Key) {
    if (key.name === 'paste-start') pasted = ''
    else if (key.name === 'paste-end') endPaste()
    else if (pasted !== null) pasted += textOf(typed, key)
    else onKey({ name: nameOf(typed, key), text: textOf(typed, key) })
  }

  function endPaste () {
    if (pasted) onPasted(pasted)
    pasted = null
  }
}

function nameOf (typed: string | undefined, key: Key) {
  if (key.ctrl) return `ctrl+${key.name}`
  if (typed === ' ') return 'space'
  return textOf(typed, key) || (key.name === 'enter' ? 'return' : String(key.name))
}

function textOf (typed: string | undefined = '', { ctrl, meta }: Key) {
  return ctrl || meta || CONTROL.test(typed) ? '' : typed
}
