import { z } from 'zod'
import { parseFields } from '../api/input.ts'
import { settingState } from './api.ts'
import { capitalised } from '../../public/format.ts'
import { saidValue } from '../../public/setting-value.ts'
import { textOfValue } from './value-text.ts'
import { attempt, errorText } from '../errors.ts'
import { cronWords } from '../words/cron.ts'
import { urlOf } from '../events/page-filters.ts'
import type { Powers } from '../dashboard/powers.ts'

/** The settings of a master: what it runs with, where that comes from, and when a change of it takes effect. */
type Setting = ReturnType<import('../dashboard/pages.ts').Deck['settings']['list']>[number]
type Origin = Pick<Setting, 'source' | 'from'>
type Deck = Pick<import('../dashboard/pages.ts').Deck, 'settings' | 'snapshot' | 'configuredAnew'>
type History = Pick<import('../../db/history.ts').History, 'page'>
type Asked = { deck: Deck, history: History, params: URLSearchParams, now: () => number }

/** Which options stand together, by the first part of their names: what people change most comes first. */
const GROUPS: readonly { id: string, title: string, parts: readonly string[] }[] = Object.freeze([{ id: 'workers',
  title: 'Workers and connections',
  parts: ['workers', 'standby', 'dispatch', 'sticky', 'rebalance', 'instanceVariable', 'compileCache', 'portPerSlot',
    'orphanMs'] }, { id: 'rollout', title: 'Rollouts', parts: ['rollout'] }, { id: 'restart',
  title: 'Restarts and limits', parts: ['restart', 'limits', 'watchdog', 'recycle', 'keeper'] }, { id: 'ready',
  title: 'Start and readiness', parts: ['start', 'ready'] }, { id: 'end', title: 'End of a worker',
  parts: ['drain', 'stop', 'crash'] }, { id: 'kept', title: 'Logs, history and diagnostics',
  parts: ['logs', 'history', 'diagnostics'] }, { id: 'releases', title: 'Releases', parts: ['releases'] }, {
  id: 'hooks',
  title: 'Hooks and jobs',
  parts: ['hooks', 'jobs']
}, { id: 'admin', title: 'Admin page and alerts', parts: ['admin', 'alerts', 'heartbeat'] }, { id: 'telemetry',
  title: 'Telemetry', parts: ['telemetry'] }, { id: 'app', title: 'App',
  parts: ['name', 'entry', 'script', 'args', 'execArgv', 'node', 'cwd', 'env', 'envFile', 'secrets', 'dataDir',
    'watch'] }, { id: 'fleet', title: 'Fleet', parts: ['fleet'] }])

const EFFECTS: Readonly<Record<Setting['takesEffect'] | 'rollout', string>> = Object.freeze({ now: 'at once',
  rollout: 'with the next rollout', deploy: 'with the next deploy', start: 'with the next start or upgrade' })
/** What somebody has set, wherever that was, comes before the groups. */
const CHANGED = Object.freeze({ id: 'changed', title: 'Changed' })

/** The newest changes, of which one is looked for by the name of an option. */
const MAX_CHANGES = 200
const FIELDS = z.object({ q: z.string().max(100).optional().describe('at most 100 characters'),
  show: z.enum(['all', 'changed']).optional().describe('all or changed') })
/** What people type who do not know our word for it. */
const OUR_WORDS: Readonly<Record<string, string>> = Object.freeze({ batch: 'same time', check: 'ready', email: 'mail',
  environment: 'variables', freeze: 'blocked', graceful: 'drain', hang: 'blocked', heap: 'memory', instances: 'workers',
  liveness: 'watchdog', logging: 'logs.', login: 'signed in', oom: 'memory', parallel: 'same time',
  prometheus: '/metrics', ram: 'memory', readiness: 'ready', retention: 'kept', rotate: 'logs.max',
  rotation: 'logs.max', schedule: 'cron', shutdown: 'drain', ssl: 'tls' })

/** `asked`: whoever may not deploy does not have the configuration read again */
export async function settingsPageModel (asked: Asked & { can?: Powers }) {
  return { ...settingsModel(asked), ...(asked.can?.operate ? await anewIn(asked.deck) : NOTHING_ANEW) }
}

/** The file is not read each time. */
export function followSettings (asked: Asked) {
  return () => ({ now: asked.now(), ...settingsModel(asked) })
}

export function settingsModel ({ deck, history, params }: Asked) {
  const all = deck.settings.list()
  const { texts: { q = '', show = 'all' } } = parseFields(FIELDS, params)
  const changers = all.some(({ source }) => source === 'operator') ? changersIn(history) : new Map()
  const running = deck.snapshot().desiredWorkers
  const isChanged = ({ source }: Setting) => source !== 'default'
  const found = all.filter((setting) => show === 'all' || isChanged(setting)).filter(isFoundBy(q))
  const groups = [{ ...CHANGED, settings: found.filter(isChanged) },
    ...GROUPS.map(({ id, title, parts }) => ({ id, title,
      settings: found.filter((setting) => !isChanged(setting) && parts.includes(setting.name.split('.')[0])) })
    )].map(({ settings, ...group }) => ({ ...group,
      settings: settings.map((setting) => toShown(setting, changers.get(setting.name) ?? null, running)) })
    )
  const link = (tab: string) => urlOf('/settings', { show: tab === 'all' ? undefined : tab, q })
  const tabs = [['all', 'All'], ['changed', 'Changed']].map(([tab, label]) => ({ label, url: link(tab),
    isCurrent: tab === show, count: tab === 'all' ? all.length : all.filter(isChanged).length })
  )
  return { q, show, tabs, groups: groups.filter(({ settings }) => settings.length > 0), problem: null,
    canonicalUrl: link(show) }
}

/**
 * Tells whether each word of it, or our word for that, is somewhere in the name, the description, what is expected, the
 * value or where that comes from
 */
function isFoundBy (q: string): (setting: Setting) => boolean {
  const words = q.toLowerCase().split(/\s+/).filter(Boolean).map((word) =>
    Object.hasOwn(OUR_WORDS, word) ? OUR_WORDS[word] : word.replace(/(?<=...)s$/, '')
  )
  return (setting) => {
    const { name, description, expected, from, isSecret } = setting
    const text = [name, description, expected, from,
      ...isSecret ? [] : Object.values(valueTexts(setting.value, setting))].join(' ').toLowerCase()
    return words.every((word) => text.includes(word))
  }
}

/** `changed`: the event; `running`: workers */
function toShown ({ value, configured, default: fallback, source, from, ...setting }: Setting,
  changed: { id: number, at: string, actor: string | null } | null, running: number)
{
  const { name, isSecret, isUsed, takesEffect } = setting
  return {
    ...setting,
    source,
    ...valueTexts(value, setting),
    // Its first clause, as a line of its own.
    short: capitalised(setting.description.split(/; |\. | \(separated|(?<=.{30}): /, 1)[0]),
    zero: zeroOf(setting.description),
    state: settingState({ name, value }),
    origin: originText({ source, from }),
    changed: source === 'operator' ? changed : null,
    configured: configured && { ...valueTexts(configured.value, setting), origin: originText(configured) },
    default: source === 'default' || isSecret || fallback === null ? null : valueTexts(fallback, setting),
    // A default holds no secret.
    isHidden: isSecret && source !== 'default',
    effect: EFFECTS[name.startsWith('rollout.') ? 'rollout' : takesEffect],
    shortEffect: takesEffect === 'now' ? 'at once' : `at the next ${takesEffect}`,
    runs: name === 'workers' && running !== value ? running : null,
    canChange: takesEffect === 'now' && !isSecret && isUsed
  }
}

/** @returns `value`: as it is typed */
function valueTexts (value: unknown,
  { name, unit, description }: Pick<Setting, 'name' | 'unit' | 'description'>
): { value: string | null, said: string | null } {
  if (value === null) return { value: null, said: null }
  const said = name === 'restart.cron' ? cronWords(String(value)) : saidValue(value, unit, zeroOf(description))
  return { value: textOfValue(value), said: said ?? textOfValue(value) }
}

/** @returns what 0 means, by the description of an option */
function zeroOf (description: string): string | null {
  return /\b0: (.+?)(?:; |\. |$)/.exec(description)?.[1] ?? null
}

function originText ({ source, from }: Origin): { text: string, from: string | null } {
  const texts = { default: 'default', operator: 'here', program: 'by the program', environment: 'by the variable',
    file: 'in', flag: from === 'entry' ? 'by the command line' : 'by the flag' }
  return { text: texts[source], from: from === 'entry' ? null : from }
}

function changersIn (history: History): Map<string, { id: number, at: string, actor: string | null }> {
  // Who has changed it is not known without the history.
  return attempt(() => {
    const events = history.page({ type: ['config.changed'], limit: MAX_CHANGES }).items.toReversed()
    return new Map(events.flatMap((event) => (event.detail?.changes ?? []).map(({ name }) => [name, event])))
  }, new Map())
}

const NOTHING_ANEW = Object.freeze({ anew: [], unreadable: null })

/** @returns what was configured since it was read */
async function anewIn (
  deck: Deck
): Promise<
  { anew: { name: string, from: string, to: string, effect: string, isSecret: boolean }[], unreadable: string | null }
> {
  const settings = new Map(deck.settings.list().map((setting) => [setting.name, setting]))
  try {
    const changes = await deck.configuredAnew()
    return { unreadable: null, anew: changes.map(({ name, from, to, takesEffect }) => {
      const { unit = null, description = '', isSecret = false } = settings.get(name) ?? {}
      const [before, after] = [from, to].map((value) =>
        valueTexts(value, { name, unit, description }).said ?? 'not set'
      )
      return { name, from: before, to: after, isSecret, effect: takesEffect === 'now'
        ? 'with the next start or upgrade, or at once if you change it below'
        : EFFECTS[takesEffect] }
    }) }
  } catch (error) {
    return { anew: [], unreadable: errorText(error) }
  }
}
