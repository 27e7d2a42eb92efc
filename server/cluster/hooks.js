import { setTimeout } from 'node:timers/promises'
import { CRASH_CAUSES, isOneOf } from '../causes.js'
import { DeckError } from '../errors.js'
import { isAlive } from '../system/process-identity.js'
import { endLeftGroup, runCommand } from './command-run.js'
import { placeOfRelease } from './command-place.js'
import { createThrottle } from './throttle.js'
import { durationText } from '../lifecycle/duration.js'

/** @typedef {ReturnType<typeof createHooks>} Hooks */
/** @typedef {'beforeStart' | 'beforeDeploy' | 'afterDeploy' | 'onCrash'} HookName */
/** @typedef {{ command: readonly string[], timeoutMs: number }} HookConfig */
/** @typedef {import('../lifecycle/state.js').Release} Release */
/** @typedef {import('../system/process-identity.js').ProcessIdentity & { name: string }} LeftHook  of a master that has died */

const CRASH_EVERY_MS = 60_000
/** A hook gets this long to end when its master does. */
const LAST_GRACE_MS = 2000
const LOOK_EVERY_MS = 50

/**
 * Runs the configured hooks. Only the deploy that a hook belongs to waits for it.
 * @param {object} parts
 * @param {() => Partial<Record<HookName, HookConfig>>} parts.configured  as the configuration was read last
 * @param {(id: string) => Release | undefined} parts.release
 * @param {(id: string) => Record<string, string | undefined>} parts.environment  of the workers of a release, over what is inherited
 * @param {Record<string, string | undefined>} parts.inherited  of the shell that the app is from
 * @param {string} parts.cwd  of a release that has none
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {(crashGroup: number) => string | null} [parts.fingerprint]
 * @param {number} [parts.crashEveryMs]
 */
export function createHooks ({ configured, release: findRelease, environment, inherited, cwd, events, fingerprint = () => null, crashEveryMs = CRASH_EVERY_MS }) {
  /** @type {Set<import('./command-run.js').CommandRun & { rollout: number | null }>} */
  const running = new Set()
  /** Hooks whose exit Node still waits for. @type {Set<number>} */
  const children = new Set()
  let isClosed = false
  /** Hooks of the last master that were told to end. @type {LeftHook[]} */
  let ending = []
  const crashes = createThrottle({ everyMs: crashEveryMs, act: runOnCrash })
  // Events that follow from another event are published after it.
  const unsubscribe = events.subscribe((event) => Promise.resolve().then(() => onEvent(event)))

  return {
    /** @param {HookName} name */
    has: (name) => configured()[name] !== undefined,

    /**
     * Waits until the hook of a dead master has ended.
     * @param {Release} release @returns {Promise<{ passed: boolean, reason: string | null, output: string }>} never rejects
     */
    async beforeStart (release) {
      while (ending.some(isAlive)) await setTimeout(LOOK_EVERY_MS)
      if (isClosed) return { passed: false, reason: 'the master is stopping', output: '' }
      return await runConfigured('beforeStart', { rollout: null, from: null, release })
    },

    /**
     * @param {{ rollout: number, from: string, release: Release }} deploy
     * @returns {Promise<{ passed: boolean, reason: string | null, output: string }>} never rejects
     */
    beforeDeploy: (deploy) => runConfigured('beforeDeploy', deploy),

    /** @param {number} rollout is cancelled */
    endOf (rollout) {
      for (const each of running) if (each.rollout === rollout && each.name === 'beforeDeploy') each.end('was ended, as the deploy was called off')
    },

    /** @param {number} pid @returns {boolean} whether it is a hook whose exit Node waits for */
    isChild: (pid) => children.has(pid),

    /** Hooks that the next master has to end if this one dies. @returns {LeftHook[]} */
    memory: () => [...running].flatMap(({ name, identity }) => identity ? [{ name, ...identity }] : []),

    /** @param {LeftHook[]} left of a master that has died: they are ended, as their rollout is lost */
    endLeft (left) {
      ending = left.filter((hook) => hook.startTime !== null)
      for (const hook of left) {
        const lives = endLeftGroup(hook, LAST_GRACE_MS)
        const message = `${hook.name} ${lives ? 'is ended' : 'has ended unseen'}: its master has died`
        events.publish({ type: 'hook.failed', cause: 'master-lost', actor: 'system', message, detail: { hook: hook.name } })
      }
    },

    /**
     * Starts no more hooks, and ends those that run.
     * @param {{ graceMs?: number }} [how]
     * @returns {Promise<void>} when they are gone
     */
    async close ({ graceMs = LAST_GRACE_MS } = {}) {
      isClosed = true
      unsubscribe()
      crashes.stop()
      const all = [...running]
      for (const each of all) each.end('was ended, as the master ends', { graceMs })
      await Promise.all(all.map(({ ended }) => ended))
    }
  }

  /** @param {import('../events/stream.js').DeckEvent} event */
  function onEvent ({ type, cause, rollout, release, slot, detail }) {
    if (isClosed) return
    if (type === 'rollout.succeeded' && detail?.kind === 'deploy') return runAfterDeploy(detail.id, detail.from, detail.to)
    if (type !== 'worker.exited' || !isOneOf(CRASH_CAUSES, cause) || !configured().onCrash) return
    crashes.offer({ release: String(release), rollout, slot, cause: String(cause), crash: detail?.crash ?? null, group: detail?.crashGroup ?? null })
  }

  /** @param {number} rollout @param {string} from @param {string} to */
  function runAfterDeploy (rollout, from, to) {
    const release = findRelease(to)
    if (release && configured().afterDeploy) runConfigured('afterDeploy', { rollout, from, release })
  }

  /**
   * @param {{ release: string, rollout: number | null, slot: number | null, cause: string, crash: number | null, group: number | null }} crash
   * @param {number} missed
   */
  async function runOnCrash ({ release: id, rollout, slot, cause, crash, group }, missed) {
    const release = findRelease(id)
    if (!release || !configured().onCrash) return
    await runConfigured('onCrash', {
      rollout,
      from: null,
      release,
      more: {
        CLUSTERDECK_CRASH: textOrUndefined(crash),
        CLUSTERDECK_CRASH_GROUP: textOrUndefined(group),
        CLUSTERDECK_CRASH_FINGERPRINT: group === null ? undefined : fingerprint(group) ?? undefined,
        CLUSTERDECK_CRASH_SLOT: textOrUndefined(slot),
        CLUSTERDECK_CRASH_CAUSE: cause,
        CLUSTERDECK_CRASH_MISSED: String(missed)
      }
    })
  }

  /**
   * @param {HookName} name
   * @param {{ rollout: number | null, from: string | null, release: Release, more?: Record<string, string | undefined> }} occasion
   */
  async function runConfigured (name, { rollout, from, release, more = {} }) {
    const { [name]: hookConfig } = configured()
    // It was removed from the configuration meanwhile.
    if (!hookConfig) return { passed: true, reason: null, output: '' }
    const place = placeFor(release)
    if (typeof place === 'string') return notRun(name, { rollout, release: release.id, why: place })
    const hook = runCommand({
      name,
      option: `hooks.${name}`,
      ...hookConfig,
      cwd: place.cwd,
      env: {
        ...place.env,
        CLUSTERDECK_HOOK: name,
        CLUSTERDECK_FROM_RELEASE: from ?? undefined,
        CLUSTERDECK_ROLLOUT: textOrUndefined(rollout),
        ...more
      },
      onExited: (pid) => children.delete(pid)
    })
    const entry = { ...hook, rollout }
    running.add(entry)
    if (hook.identity) children.add(hook.identity.pid)
    const about = { rollout, release: release.id, actor: 'system' }
    events.publish({ type: 'hook.started', ...about, pid: hook.identity?.pid ?? null, message: name, detail: { hook: name } })
    const { passed, code, signal, durationMs, reason, output } = await hook.ended
    running.delete(entry)
    const detail = { hook: name, durationMs, ...(output !== '' && { output }) }
    const message = reason ?? `${name} took ${durationText(durationMs)}`
    events.publish({ type: passed ? 'hook.succeeded' : 'hook.failed', ...about, pid: hook.identity?.pid ?? null, code, signal, message, detail })
    return { passed, reason, output }
  }

  /** @param {Release} release @returns {ReturnType<typeof placeOfRelease> | string} why its variables are not known */
  function placeFor (release) {
    try {
      return placeOfRelease(release, { own: environment(release.id), inherited, cwd })
    } catch (error) {
      if (error instanceof DeckError) return error.message
      throw error
    }
  }

  /** @param {HookName} name @param {{ rollout: number | null, release: string, why: string }} occasion */
  function notRun (name, { rollout, release, why }) {
    const reason = `${name} was not run: ${why}`
    events.publish({ type: 'hook.failed', rollout, release, actor: 'system', message: reason, detail: { hook: name } })
    return { passed: false, reason, output: '' }
  }
}

/** @param {number | null} number */
function textOrUndefined (number) {
  return number === null ? undefined : String(number)
}
