import { emitKeypressEvents } from 'node:readline'

/**
 * The keys of a terminal, one by one, as they are pressed.
 *
 * @typedef {{ name?: string, sequence?: string, ctrl?: boolean, meta?: boolean }} Key as node:readline has it
 * @typedef {(key: { name: string, text: string }) => void} OnKey `name`: such as q, G, up, ctrl+c; `text`: what was typed, where it is text
 */

// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/

/**
 * @param {NodeJS.ReadStream} stdin a terminal
 * @param {{ onKey: OnKey, onPasted: (text: string) => void, onEnd: () => void }} handlers `onEnd`: the terminal has gone
 */
export function createKeyboard (stdin, { onKey, onPasted, onEnd }) {
  /** @type {string | null} what was pasted so far: its keys are no commands */
  let pasted = null
  let isOpen = false

  return {
    open () {
      isOpen = true
      emitKeypressEvents(stdin)
      stdin.setRawMode(true)
      stdin.on('keypress', pressKey).on('end', onEnd).on('error', onEnd)
      stdin.resume()
    },

    close () {
      if (!isOpen) return
      isOpen = false
      stdin.off('keypress', pressKey).off('end', onEnd)
      try {
        stdin.setRawMode(false)
      } catch {
        // EIO: the terminal has gone.
      }
      stdin.pause()
    }
  }

  /** @param {string | undefined} typed @param {Key} key */
  function pressKey (typed, key) {
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

/** @param {string | undefined} typed @param {Key} key */
function nameOf (typed, key) {
  if (key.ctrl) return `ctrl+${key.name}`
  if (typed === ' ') return 'space'
  return textOf(typed, key) || (key.name === 'enter' ? 'return' : String(key.name))
}

/** @param {string | undefined} typed @param {Key} key */
function textOf (typed = '', { ctrl, meta }) {
  return ctrl || meta || CONTROL.test(typed) ? '' : typed
}
