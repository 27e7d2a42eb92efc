import path from 'node:path'
import type { App } from './convert.ts'
import type { Program } from './program.ts'

/** Options that count for a job, too. */
const ALSO_OF_JOBS = ['cwd', 'env', 'envFile', 'releases.git', 'hooks.build']
/** What a job is made of. */
const IN_JOB = ['entry', 'args', 'execArgv', 'restart.cron', 'restart.policy', 'autostart']
/** PM2 has no limit; this is the longest that a job can have. */
const LONGEST_MS = 2 ** 31 - 1
const NO_SERVER = 'Nothing runs between the times of the job: this program ends at once.'
const AT_ITS_TIMES =
  'cron_restart: what is not kept running is a job. It runs at these times alone and by "clusterdeck jobs run", not at a start; a run that still goes on is ended by the next one, as by PM2. If it is a server, give it an entry of its own instead, and restart.cron.'

/**
 * What runs by the clock alone is the only job of an app, so it has a folder and variables of its own. `app`: as it
 * would be with workers.
 */
export function jobApp ({ name, settings, items, notes }: App,
  { program, cwd }: { program: Program, cwd: string }): App
{
  const job = { cron: settings.get('restart.cron'), command: commandOf(program, settings, cwd), overlap: 'replace',
    timeoutMs: LONGEST_MS }
  return { name,
    settings: new Map([['entry', 'true'], ...[...settings].filter(([option]) => ALSO_OF_JOBS.includes(option)),
      ...Object.entries({ workers: 1, 'restart.policy': 'never', jobs: { [nameOf(name)]: job } })]),
    items: items.map((item) => itemOfJob(item, settings)),
    notes: [{ option: 'entry', text: NO_SERVER },
      ...notes.filter(({ option }) => option !== 'workers').map(({ option, text }) => ({
        option: option === 'entry' ? 'jobs' : option,
        text
      })), { option: 'jobs', text: AT_ITS_TIMES }] }
}

function commandOf ({ entry, args, isCommand, isOther = false }: Program, settings: App['settings'],
  cwd: string): string[]
{
  if (isOther) return [entry, ...args]
  if (isCommand)
    return /^(npm|npx|yarn|yarnpkg|pnpm|pnpx)$/.test(entry) ? [entry, ...args] : ['npx', '--no', entry, ...args]
  const near = path.relative(cwd, entry)
  const options = (settings.get('execArgv') ?? []) as string[]
  return ['node', ...options, /^[.-]/.test(near) ? entry : near, ...args]
}

/** The API has paths of these names. */
function nameOf (name: string) {
  return ['runs', 'command'].includes(name) ? `${name}-job` : name
}

function itemOfJob (item: App['items'][number], settings: App['settings']): App['items'][number] {
  if (item.to[0] === 'workers' && settings.get('workers') === 1) return { ...item, note: null }
  if (item.to.length === 0 || item.to.some((option) => ALSO_OF_JOBS.includes(option))) return item
  if (item.to.some((option) => IN_JOB.includes(option))) return { ...item, fate: 'replaced', to: ['jobs'], note: null }
  return { ...item, fate: 'left out', to: [], note: 'it is for workers, and this is a job' }
}
