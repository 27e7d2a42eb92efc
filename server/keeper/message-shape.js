/**
 * Tells which messages on the channel of a master are for the keeper: a preloaded file, a config file or a program other
 * than node may write there too. See link.js for what each message means.
 */

/** @typedef {Record<string, unknown>} Message */

const MAX_KEY_CHARS = 1000

/** How each type has to look. @type {Readonly<Record<string, (message: Message, handle: unknown) => boolean>>} */
const SHAPES = Object.freeze({
  hello: () => true,
  hold: ({ key }, handle) => isKey(key) && handle !== undefined && handle !== null,
  drop: ({ key }) => isKey(key),
  // One of a version before says less.
  started: ({ giveUpAfter, hang }) => isOptional(giveUpAfter, isCount) && isOptional(hang, isHang),
  watch: ({ hang }) => isOptional(hang, isHang),
  beat: () => true,
  remember: ({ content, app }) => content !== undefined && isApp(app),
  unsaved: ({ event, app }) => isObject(event) && isText(event.type) && isCount(event.id) && isApp(app),
  saved: ({ app }) => isApp(app),
  ending: () => true,
  'start-failed': ({ code }) => isCount(code),
  cancel: () => true,
  upgrade: ({ execPath, apps }) => isOptional(execPath, isText) && (apps === undefined || (Array.isArray(apps) && apps.every(isKey))),
  serving: () => true,
  'handed-over': () => true,
  relay: ({ failing, event, workers, app }) => {
    if (!isApp(app)) return false
    if (failing !== undefined) return isText(failing)
    return isObject(event) && isText(event.type) && Array.isArray(workers) && workers.every(isObject)
  }
})

/**
 * @param {unknown} message @param {unknown} handle  what has come along
 * @returns {string | null} null: nothing is wrong with it
 */
export function whyMisshapen (message, handle) {
  if (!isObject(message) || !isText(message.type)) return 'a message without a type'
  if (!Object.hasOwn(SHAPES, message.type)) return `a message of a type that nobody knows: ${message.type}`
  return SHAPES[message.type](message, handle) ? null : `a message "${message.type}" that lacks what belongs to it`
}

/** @param {unknown} value @returns {value is Message} */
function isObject (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @param {unknown} value @returns {value is string} */
function isText (value) {
  return typeof value === 'string'
}

/** @param {unknown} value */
function isKey (value) {
  return isText(value) && value.length <= MAX_KEY_CHARS
}

/** @param {unknown} value of no app: the master itself */
function isApp (value) {
  return value === undefined || isKey(value)
}

/** @param {unknown} value */
function isCount (value) {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

/** @param {unknown} value */
function isHang (value) {
  return isObject(value) && isOptional(value.afterMs, isCount) && isOptional(value.stack, (stack) => stack === 'on' || stack === 'off')
}

/** @param {unknown} value @param {(value: unknown) => boolean} isRight */
function isOptional (value, isRight) {
  return value === undefined || value === null || isRight(value)
}
