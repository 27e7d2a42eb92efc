import { setTimeout as wait } from 'node:timers/promises'
import { inStopOrder } from '../config/app-order.js'
import { DeckError } from '../errors.js'
import { waitAtMost } from '../system/wait-at-most.js'
import { showOutput } from './app-output.js'
import { followApps, isOver } from './ready-apps.js'

/** @typedef {import('./fill-host.js').Ordered} Ordered */

/** @typedef {ReturnType<typeof attach>} Member */

const POLL_MS = 100
/** How long the last output of an app is awaited where it has ended. */
const SHOWN_WITHIN_MS = 1000

/**
 * Shows what apps of the host write and what becomes of them, until all have ended.
 * @param {ReadonlyMap<string, Ordered>} ordered by label, as they were ordered
 * @param {object} parts
 * @param {import('./host.js').LastingHost} parts.host
 * @param {import('./prefixed.js').Prefixed} parts.prefixed
 * @param {Parameters<typeof followApps>[1]['howHostEnded']} parts.howHostEnded
 */
export function createAttachment (ordered, { host, prefixed, howHostEnded }) {
  let isStopping = false
  const members = new Map([...ordered].map(([label, app]) => [app, attach(label, app, { host, prefixed })]))
  const following = followApps([...ordered.values()], { host, tell, howHostEnded, toTheEnd: true })
  const ours = [...members.values()].filter(({ app }) => app.isInHost && !app.ranBefore)

  return {
    /** Resolves once all have ended, or are left. */
    over: following.then(async () => {
      await Promise.all([...members.values()].map(({ ended }) => ended))
      // The host does not try those again either.
      await Promise.all(ours.filter(({ app }) => app.state === 'failed').map(({ app }) => orderStop(app).catch(() => {})))
    }),

    /** Stops those that were started here, each after those that depend on it; the others go on. @param {import('../config/app-order.js').Apps} apps */
    async stop (apps) {
      isStopping = true
      for (const member of members.values()) if (member.app.ranBefore) member.leave('goes on in the host')
      await inStopOrder(apps, ours.map(({ label }) => label), async (label) => {
        const member = ours.find((each) => each.label === label)
        if (member) await stopMember(member)
      })
    },

    /** Ends those that were started here at once. */
    async kill () { await Promise.all(ours.map((member) => stopMember(member, '?now=true'))) },

    /** Follows them no more. @param {string} text why */
    leave (text) { for (const member of members.values()) member.leave(text) }
  }

  /** @param {import('./ready-apps.js').Followed} app @param {string} text */
  function tell (app, text) {
    const member = members.get(/** @type {Ordered} */ (app))
    if (isOver(app)) member?.end(text)
    else if (!isStopping) member?.say(text)
  }

  /** @param {Member} member @param {string} [query] */
  async function stopMember ({ app, ended }, query) {
    while (!isOver(app)) {
      try {
        await orderStop(app, query)
        break
      } catch (error) {
        if (!(error instanceof DeckError)) throw error
        // A master that follows may answer, or the host has ended.
        await wait(POLL_MS)
      }
    }
    await ended
  }

  /** @param {Ordered} app @param {string} [query] */
  async function orderStop ({ name }, query = '') {
    await host.post(`/apps/${name}/stop${query}`)
  }
}

/**
 * @param {string} label @param {Ordered} app
 * @param {{ host: import('./host.js').LastingHost, prefixed: import('./prefixed.js').Prefixed }} parts
 */
function attach (label, app, { host, prefixed }) {
  const cut = new AbortController()
  /** @type {PromiseWithResolvers<void>} */
  const ended = Promise.withResolvers()
  const output = { host, fromStart: !app.ranBefore, isOver: () => isOver(app), until: cut.signal }
  const shown = isOver(app) ? Promise.resolve() : showOutput(app.name, { ...output, show: (stream, lines) => prefixed.show(label, stream, lines) })
  if (isOver(app)) ended.resolve()

  return {
    label,
    app,

    /** Resolves once its end is told. */
    ended: ended.promise,

    /** @param {string} text */
    say (text) {
      prefixed.say(label, text)
      if (app.state === 'ready') for (const address of app.status?.app.addresses ?? []) prefixed.print(label, `listens on ${address}`)
    },

    /** Tells of its end, after the last that it has written. @param {string} text */
    async end (text) {
      await waitAtMost(shown, SHOWN_WITHIN_MS)
      cut.abort()
      prefixed.say(label, text)
      ended.resolve()
    },

    /** Follows it no more, though it runs. @param {string} text why */
    leave (text) {
      if (isOver(app)) return
      app.state = 'left'
      cut.abort()
      prefixed.say(label, text)
      ended.resolve()
    }
  }
}
