import { setTimeout } from 'node:timers/promises'
import { CRASH_CAUSES, isOneOf } from '../causes.ts'
import { DeckError } from '../errors.ts'
import { isAlive, type ProcessIdentity } from '../system/process-identity.ts'
import { endLeftGroup, runCommand, type CommandRun } from './command-run.ts'
import { createThrottle } from './throttle.ts'
import { durationText } from '../lifecycle/duration.ts'
import type { PlaceOf } from './command-place.ts'
import type { Release } from '../lifecycle/state.ts'
import type { DeckEvent, EventStream } from '../events/stream.ts'

export type Hooks = ReturnType<typeof createHooks>
type HookName = 'beforeStart' | 'beforeDeploy' | 'afterDeploy' | 'onCrash'
type HookConfig = { command: readonly string[], timeoutMs: number }
/** of a master that has died */
export type LeftHook = ProcessIdentity & { name: string }

const CRASH_EVERY_MS = 60_000
/** A hook gets this long to end when its master does. */
const LAST_GRACE_MS = 2000
const LOOK_EVERY_MS = 50

/** Runs the configured hooks. Only the deploy that a hook belongs to waits for it. */
export function createHooks (
  { configured, release: findRelease, placeOf, events, fingerprint = () => null, crashEveryMs = CRASH_EVERY_MS }: {
    /** as the configuration was read last */
    configured: () => Partial<Record<HookName, HookConfig>>,
    release: (id: string) => Release | undefined,
    placeOf: PlaceOf,
    events: EventStream,
    fingerprint?: (crashGroup: number) => string | null,
    crashEveryMs?: number
  }
) {
  const running: Set<CommandRun & { rollout: number | null }> = new Set()
  /** Hooks whose exit Node still waits for. */
  const children: Set<number> = new Set()
  let isClosed = false
  /** Hooks of the last master that were told to end. */
  let ending: LeftHook[] = []
  const crashes = createThrottle({ everyMs: crashEveryMs, act: runOnCrash })
  // Events that follow from another event are published after it.
  const unsubscribe = events.subscribe((event) => Promise.resolve().then(() => onEvent(event)))

  return {
    has: (name: HookName) => configured()[name] !== undefined,

    /** Waits until the hook of a dead master has ended. @returns never rejects */
    async beforeStart (release: Release): Promise<{ passed: boolean, reason: string | null, output: string }> {
      while (ending.some(isAlive)) await setTimeout(LOOK_EVERY_MS)
      if (isClosed) return { passed: false, reason: 'the master is stopping', output: '' }
      return await runConfigured('beforeStart', { rollout: null, from: null, release })
    },

    /** @returns never rejects */
    beforeDeploy: (
      deploy: { rollout: number, from: string, release: Release }
    ): Promise<{ passed: boolean, reason: string | null, output: string }> => runConfigured('beforeDeploy', deploy),

    /** `rollout`: is cancelled */
    endOf (rollout: number) {
      for (const each of running)
        if (each.rollout === rollout && each.name === 'beforeDeploy')
          each.end('was ended, as the deploy was called off')
    },

    /** Tells whether it is a hook whose exit Node waits for */
    isChild: (pid: number): boolean => children.has(pid),

    /** Hooks that the next master has to end if this one dies. */
    memory: (): LeftHook[] => [...running].flatMap(({ name, identity }) => identity ? [{ name, ...identity }] : []),

    /** `left`: of a master that has died: they are ended, as their rollout is lost */
    endLeft (left: LeftHook[]) {
      ending = left.filter((hook) => hook.startTime !== null)
      for (const hook of left) {
        const lives = endLeftGroup(hook, LAST_GRACE_MS)
        const message = `${hook.name} ${lives ? 'is ended' : 'has ended unseen'}: its master has died`
        events.publish({ type: 'hook.failed', cause: 'master-lost', actor: 'system', message,
          detail: { hook: hook.name } })
      }
    },

    /** Starts no more hooks, and ends those that run. Returns when they are gone. */
    async close ({ graceMs = LAST_GRACE_MS }: { graceMs?: number } = {}): Promise<void> {
      isClosed = true
      unsubscribe()
      crashes.stop()
      const all = [...running]
      for (const each of all) each.end('was ended, as the master ends', { graceMs })
      await Promise.all(all.map(({ ended }) => ended))
    }
  }

  function onEvent ({ type, cause, rollout, release, slot, detail }: DeckEvent) {
    if (isClosed) return
    if (type === 'rollout.succeeded' && detail?.kind === 'deploy')
      return runAfterDeploy(Number(detail.id), String(detail.from), String(detail.to))
    if (type !== 'worker.exited' || !isOneOf(CRASH_CAUSES, cause) || !configured().onCrash) return
    crashes.offer({ release: String(release), rollout, slot, cause: String(cause), crash: detail?.crash ?? null,
      group: detail?.crashGroup ?? null })
  }

  function runAfterDeploy (rollout: number, from: string, to: string) {
    const release = findRelease(to)
    if (release && configured().afterDeploy) runConfigured('afterDeploy', { rollout, from, release })
  }

  async function runOnCrash (
    { release: id, rollout, slot, cause, crash, group }: { release: string, rollout: number | null, slot: number | null,
      cause: string, crash: number | null, group: number | null },
    missed: number
  ) {
    const release = findRelease(id)
    if (!release || !configured().onCrash) return
    await runConfigured('onCrash', { rollout, from: null, release,
      more: { CLUSTERDECK_CRASH: textOrUndefined(crash), CLUSTERDECK_CRASH_GROUP: textOrUndefined(group),
        CLUSTERDECK_CRASH_FINGERPRINT: group === null ? undefined : fingerprint(group) ?? undefined,
        CLUSTERDECK_CRASH_SLOT: textOrUndefined(slot), CLUSTERDECK_CRASH_CAUSE: cause,
        CLUSTERDECK_CRASH_MISSED: String(missed) } })
  }

  async function runConfigured (name: HookName,
    { rollout, from, release, more = {} }: { rollout: number | null, from: string | null, release: Release,
      more?: Record<string, string | undefined> })
  {
    const { [name]: hookConfig } = configured()
    // It was removed from the configuration meanwhile.
    if (!hookConfig) return { passed: true, reason: null, output: '' }
    const place = placeFor(release)
    if (typeof place === 'string') return notRun(name, { rollout, release: release.id, why: place })
    const hook = runCommand({ name, option: `hooks.${name}`, ...hookConfig, cwd: place.cwd,
      env: { ...place.env, CLUSTERDECK_HOOK: name, CLUSTERDECK_FROM_RELEASE: from ?? undefined,
        CLUSTERDECK_ROLLOUT: textOrUndefined(rollout), ...more }, onExited: (pid) => children.delete(pid) })
    const entry = { ...hook, rollout }
    running.add(entry)
    if (hook.identity) children.add(hook.identity.pid)
    const about = { rollout, release: release.id, actor: 'system' }
    events.publish({ type: 'hook.started', ...about, pid: hook.identity?.pid ?? null, message: name,
      detail: { hook: name } })
    const { passed, code, signal, durationMs, reason, output } = await hook.ended
    running.delete(entry)
    const detail = { hook: name, durationMs, ...(output !== '' && { output }) }
    const message = reason ?? `${name} took ${durationText(durationMs)}`
    events.publish({ type: passed ? 'hook.succeeded' : 'hook.failed', ...about, pid: hook.identity?.pid ?? null, code,
      signal, message, detail })
    return { passed, reason, output }
  }

  /** @returns why its variables are not known */
  function placeFor (release: Release): ReturnType<PlaceOf> | string {
    try {
      return placeOf(release)
    } catch (error) {
      if (error instanceof DeckError) return error.message
      throw error
    }
  }

  function notRun (name: HookName,
    { rollout, release, why }: { rollout: number | null, release: string, why: string })
  {
    const reason = `${name} was not run: ${why}`
    events.publish({ type: 'hook.failed', rollout, release, actor: 'system', message: reason, detail: { hook: name } })
    return { passed: false, reason, output: '' }
  }
}

function textOrUndefined (number: number | null) {
  return number === null ? undefined : String(number)
}
