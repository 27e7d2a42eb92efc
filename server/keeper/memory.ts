import type { DeckEvent } from '../events/stream.ts'

/**
 * What the keeper remembers for its masters while their disk is full: a checkpoint, and events that no history has. A
 * host has one of each for itself, and for each of its apps.
 */
export type MemoryOfApp = { app: string, memory: unknown, unsaved: DeckEvent[] }

/** A master keeps this many events that it cannot write. */
const MAX_UNSAVED = 10_000

export function createMemory ({ maxUnsaved = MAX_UNSAVED }: { maxUnsaved?: number } = {}) {
  /** undefined: of the master itself */
  const kept: Map<string | undefined, { content: unknown, unsaved: DeckEvent[] }> = new Map()
  let unsavedCount = 0

  return {
    /** `content`: null: a file says it */
    remember (content: unknown, app?: string) {
      of(app).content = content
      tidyUp(app)
    },

    keep (event: DeckEvent, app?: string) {
      of(app).unsaved.push(event)
      unsavedCount++
      if (unsavedCount > maxUnsaved) dropOldest()
    },

    /** The history has them all. */
    saved (app?: string) {
      unsavedCount -= of(app).unsaved.length
      of(app).unsaved = []
      tidyUp(app)
    },

    /** For a master that begins. */
    greeting (): { memory: unknown, unsaved: DeckEvent[], apps?: MemoryOfApp[] } {
      const { content, unsaved } = look(undefined)
      const apps = names().map((app) => ({ app, memory: look(app).content, unsaved: look(app).unsaved }))
      return { memory: content, unsaved, ...(apps.length > 0 && { apps }) }
    },

    /** For a master that has begun while the one before still wrote. */
    contents (): { content: unknown, apps?: { app: string, content: unknown }[] } {
      const apps = names().map((app) => ({ app, content: look(app).content }))
      return { content: look(undefined).content, ...(apps.length > 0 && { apps }) }
    }
  }

  function names () {
    return [...kept.keys()].filter((app) => app !== undefined)
  }

  function look (app: string | undefined) {
    return kept.get(app) ?? { content: null, unsaved: [] }
  }

  function of (app: string | undefined) {
    const one = look(app)
    kept.set(app, one)
    return one
  }

  function tidyUp (app: string | undefined) {
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
