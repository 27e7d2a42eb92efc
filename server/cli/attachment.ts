import { setTimeout as wait } from 'node:timers/promises'
import { inStopOrder, type Apps } from '../config/app-order.ts'
import { DeckError } from '../errors.ts'
import { waitAtMost } from '../system/wait-at-most.ts'
import { showOutput } from './app-output.ts'
import { followApps, isOver, type Followed } from './ready-apps.ts'
import type { Ordered } from './fill-host.ts'
import type { LastingHost } from './host.ts'
import type { Prefixed } from './prefixed.ts'

type Member = ReturnType<typeof attach>

const POLL_MS = 100
/** How long the last output of an app is awaited where it has ended. */
const SHOWN_WITHIN_MS = 1000

/**
 * Shows what apps of the host write and what becomes of them, until all have ended.
 * @param ordered by label, as they were ordered
 */
export function createAttachment (ordered: ReadonlyMap<string, Ordered>,
  { host, prefixed, howHostEnded }: { host: LastingHost, prefixed: Prefixed,
    howHostEnded: Parameters<typeof followApps>[1]['howHostEnded'] })
{
  let isStopping = false
  const members = new Map([...ordered].map(([label, app]) => [app, attach(label, app, { host, prefixed })]))
  const following = followApps([...ordered.values()], { host, tell, howHostEnded, toTheEnd: true })
  const ours = [...members.values()].filter(({ app }) => app.isInHost && !app.ranBefore)

  return {
    /** Resolves once all have ended, or are left. */
    over: following.then(async () => {
      await Promise.all([...members.values()].map(({ ended }) => ended))
      // The host does not try those again either.
      await Promise.all(
        ours.filter(({ app }) => app.state === 'failed').map(({ app }) => orderStop(app).catch(() => {}))
      )
    }),

    /** Stops those that were started here, each after those that depend on it; the others go on. */
    async stop (apps: Apps) {
      isStopping = true
      for (const member of members.values()) if (member.app.ranBefore) member.leave('goes on in the host')
      await inStopOrder(apps, ours.map(({ label }) => label), async (label) => {
        const member = ours.find((each) => each.label === label)
        if (member) await stopMember(member)
      })
    },

    /** Ends those that were started here at once. */
    async kill () {
      await Promise.all(ours.map((member) => stopMember(member, '?now=true')))
    },

    /** Follows them no more. `text`: why. */
    leave (text: string) {
      for (const member of members.values()) member.leave(text)
    }
  }

  function tell (app: Followed, text: string) {
    const member = members.get(app as Ordered)
    if (isOver(app)) member?.end(text)
    else if (!isStopping) member?.say(text)
  }

  async function stopMember ({ app, ended }: Member, query?: string) {
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

  async function orderStop ({ name }: Ordered, query: string = '') {
    await host.post(`/apps/${name}/stop${query}`)
  }
}

function attach (label: string, app: Ordered, { host, prefixed }: { host: LastingHost, prefixed: Prefixed }) {
  const cut = new AbortController()
  const ended: PromiseWithResolvers<void> = Promise.withResolvers()
  const output = { host, fromStart: !app.ranBefore, isOver: () => isOver(app), until: cut.signal }
  const shown = isOver(app)
    ? Promise.resolve()
    : showOutput(app.name, { ...output, show: (stream, lines) => prefixed.show(label, stream, lines) })
  if (isOver(app)) ended.resolve()

  return {
    label,
    app,

    /** Resolves once its end is told. */
    ended: ended.promise,

    say (text: string) {
      prefixed.say(label, text)
      if (app.state === 'ready') {
        for (const address of app.status?.app.addresses ?? []) prefixed.print(label, `listens on ${address}`)
      }
    },

    /** Tells of its end, after the last that it has written. */
    async end (text: string) {
      await waitAtMost(shown, SHOWN_WITHIN_MS)
      cut.abort()
      prefixed.say(label, text)
      ended.resolve()
    },

    /** Follows it no more, though it runs. `text`: why. */
    leave (text: string) {
      if (isOver(app)) return
      app.state = 'left'
      cut.abort()
      prefixed.say(label, text)
      ended.resolve()
    }
  }
}
