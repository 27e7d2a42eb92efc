/**
 * What the keeper remembers for its masters while their disk is full: a checkpoint, and events that no history has. A host
 * has one of each for itself, and for each of its apps.
 * @typedef {import('./link.js').DeckEvent} DeckEvent
 * @typedef {{ app: string, memory: unknown, unsaved: DeckEvent[] }} MemoryOfApp
 */

/** A master keeps this many events that it cannot write. */
const MAX_UNSAVED = 10_000

/** @param {{ maxUnsaved?: number }} [limits] */
export function createMemory ({ maxUnsaved = MAX_UNSAVED } = {}) {
  /** @type {Map<string | undefined, { content: unknown, unsaved: DeckEvent[] }>} undefined: of the master itself */
  const kept = new Map()
  let unsavedCount = 0

  return {
    /** @param {unknown} content null: a file says it @param {string} [app] */
    remember (content, app) {
      of(app).content = content
      tidyUp(app)
    },

    /** @param {DeckEvent} event @param {string} [app] */
    keep (event, app) {
      of(app).unsaved.push(event)
      unsavedCount++
      if (unsavedCount > maxUnsaved) dropOldest()
    },

    /** The history has them all. @param {string} [app] */
    saved (app) {
      unsavedCount -= of(app).unsaved.length
      of(app).unsaved = []
      tidyUp(app)
    },

    /** For a master that begins. @returns {{ memory: unknown, unsaved: DeckEvent[], apps?: MemoryOfApp[] }} */
    greeting () {
      const { content, unsaved } = look(undefined)
      const apps = names().map((app) => ({ app, memory: look(app).content, unsaved: look(app).unsaved }))
      return { memory: content, unsaved, ...(apps.length > 0 && { apps }) }
    },

    /** For a master that has begun while the one before still wrote. @returns {{ content: unknown, apps?: { app: string, content: unknown }[] }} */
    contents () {
      const apps = names().map((app) => ({ app, content: look(app).content }))
      return { content: look(undefined).content, ...(apps.length > 0 && { apps }) }
    }
  }

  function names () {
    return [...kept.keys()].filter((app) => app !== undefined)
  }

  /** @param {string | undefined} app */
  function look (app) {
    return kept.get(app) ?? { content: null, unsaved: [] }
  }

  /** @param {string | undefined} app */
  function of (app) {
    const one = look(app)
    kept.set(app, one)
    return one
  }

  /** @param {string | undefined} app */
  function tidyUp (app) {
    const { content, unsaved } = look(app)
    if (content === null && unsaved.length === 0) kept.delete(app)
  }

  /** Of the app that has most of them, so that none costs another one its own. */
  function dropOldest () {
    const most = [...kept.values()].reduce((one, other) => other.unsaved.length > one.unsaved.length ? other : one)
    most.unsaved.shift()
    unsavedCount--
  }
}
