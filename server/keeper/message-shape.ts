/**
 * Tells which messages on the channel of a master are for the keeper: a preloaded file, a config file or a program
 * other than node may write there too. See link.ts for what each message means.
 */

type Message = Record<string, unknown>

const MAX_KEY_CHARS = 1000

/** How each type has to look. */
const SHAPES: Readonly<Record<string, (message: Message, handle: unknown) => boolean>> = Object.freeze({
  hello: () => true,
  hold: ({ key }, handle) => isKey(key) && handle !== undefined && handle !== null,
  drop: ({ key }) => isKey(key),
  started: ({ giveUpAfter, hang }) => isOptional(giveUpAfter, isCount) && isOptional(hang, isHang),
  watch: ({ hang }) => isOptional(hang, isHang),
  // One of a version before says less.
  beat: ({ memoryBytes }) => isOptional(memoryBytes, isCount),
  remember: ({ content, app }) => content !== undefined && isApp(app),
  unsaved: ({ event, app }) => isObject(event) && isText(event.type) && isCount(event.id) && isApp(app),
  saved: ({ app }) => isApp(app),
  ending: () => true,
  'start-failed': ({ code }) => isCount(code),
  cancel: () => true,
  upgrade: ({ execPath, apps }) =>
    isOptional(execPath, isText) && (apps === undefined || (Array.isArray(apps) && apps.every(isKey))),
  serving: () => true,
  'handed-over': () => true,
  relay: ({ failing, event, workers, app }) => {
    if (!isApp(app)) return false
    if (failing !== undefined) return isText(failing)
    return isObject(event) && isText(event.type) && Array.isArray(workers) && workers.every(isObject)
  }
})

/** `handle`: what has come along. Returns null: nothing is wrong with it. */
export function whyMisshapen (message: unknown, handle: unknown): string | null {
  if (!isObject(message) || !isText(message.type)) return 'a message without a type'
  if (!Object.hasOwn(SHAPES, message.type)) return `a message of a type that nobody knows: ${message.type}`
  return SHAPES[message.type](message, handle) ? null : `a message "${message.type}" that lacks what belongs to it`
}

function isObject (value: unknown): value is Message {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText (value: unknown): value is string {
  return typeof value === 'string'
}

function isKey (value: unknown) {
  return isText(value) && value.length <= MAX_KEY_CHARS
}

/** `value`: of no app: the master itself */
function isApp (value: unknown) {
  return value === undefined || isKey(value)
}

function isCount (value: unknown) {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isHang (value: unknown) {
  return isObject(value) && isOptional(value.afterMs, isCount) &&
    isOptional(value.stack, (stack) => stack === 'on' || stack === 'off')
}

function isOptional (value: unknown, isRight: (value: unknown) => boolean) {
  return value === undefined || value === null || isRight(value)
}
