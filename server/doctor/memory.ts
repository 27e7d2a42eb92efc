import { formatBytes } from '../../public/format.ts'
import { strategyOf } from '../lifecycle/rollout/strategy.ts'
import { command, finding, inCode, type Check } from './finding.ts'
import { optionLine } from './option-line.ts'
import type { Running } from './facts.ts'

const MIB = 1024 ** 2
/** What keeper and master take at least. */
const OWN_BYTES = 100 * MIB

/** whether the workers fit, also while a deploy replaces some */
export const checkMemory: Check = (facts) => {
  const { machine: { memory }, config, running } = facts
  const limit = memory.limitBytes ?? memory.totalBytes
  const where = memory.limitBytes === null ? 'the machine' : 'the control group'
  const each = running ? largestOf(running) : heapLimitOf(config.execArgv)
  if (each === null)
    return [
      finding('memory', 'unknown', running
        ? 'No worker has told yet how much memory it takes'
        : 'How much memory a worker takes is known once it runs')
    ]
  const workers = running?.desiredWorkers ?? config.workers
  const { order, surge, canary } = strategyOf('deploy', workers, config.rollout)
  const beside = order === 'stop-first' ? 0 : Math.max(surge, canary?.workers ?? 0)
  const most = workers + config.standby + beside
  const own = running?.master.isShared ? running.master.rssBytes : Math.max(OWN_BYTES, running?.master.rssBytes ?? 0)
  const needs = own + most * each
  const said = `${most} × ${formatBytes(each)}${running ? '' : ' (--max-old-space-size)'} of ${
    formatBytes(limit)
  } that ${where} has`
  if (needs <= limit) return [finding('memory', 'ok', `The workers fit into memory: ${said}`)]
  const isTooMuch = own + (workers + config.standby) * each > limit
  const fitting = Math.floor((limit - own) / each) - config.standby - beside
  const mend = fitting < 1
    ? [
      inCode(
        `Let a worker take less, as by --max-old-space-size=${
          Math.floor((limit - own) / most / MIB)
        }, or give ${where} more memory`
      )
    ]
    : [...running ? [command(`clusterdeck scale ${fitting}`, config.cwd)] : [], optionLine(facts, { workers: fitting })]
  return [
    finding('memory', isTooMuch && running ? 'error' : 'warning',
      isTooMuch ? `The workers do not fit into memory: ${said}` : `A deploy does not fit into memory: ${said}`,
      isTooMuch
        ? 'The kernel kills processes when memory is used up, with all requests that they have.'
        : `A deploy runs ${beside} more ${
          beside === 1 ? 'worker' : 'workers'
        } at the same time; when memory is used up, the kernel kills some with all their requests.`, mend)
  ]
}

function largestOf ({ workers }: Running): number | null {
  const sizes = workers.flatMap(({ rssBytes }) => rssBytes ?? [])
  return sizes.length === 0 ? null : Math.max(...sizes)
}

function heapLimitOf (execArgv: readonly string[]): number | null {
  const [, megabytes] = /--max[-_]old[-_]space[-_]size[= ](\d+)/.exec(execArgv.join(' ')) ?? []
  return megabytes === undefined ? null : Number(megabytes) * MIB
}
