import { createTreeUsage, pidsOf } from '../system/tree-usage.ts'
import type { ToMaster } from '../../workers/protocol.ts'

const FIRST_LOOK_MS = 250
const LOOK_EVERY_MS = 1000
/** After so long without work a program loads nothing any more. */
const IDLE_MS = 5000
/** Above this share of one CPU it counts as working. */
const IDLE_SHARE = 0.1
/** What keeps it running is not known from outside. */
const RESOURCES = ['Program']

/**
 * Tells of a program that it runs, and whether it has only waited for a while, for as long as it does not listen: a
 * queue consumer never does.
 */
export function tellProgramActivity ({ pid, onMessage, cpuMsOf = createCpuMeter(), now = () => performance.now() }: {
  pid: number,
  onMessage: (message: Extract<ToMaster, { type: 'active' }>) => void,
  /** of it and all that it has started; null: they have ended */
  cpuMsOf?: (pid: number) => number | null,
  /** monotonic, ms */
  now?: () => number
}) {
  let told: boolean | undefined
  let before = { at: now(), cpuMs: 0 }
  let idleSince = now()
  let timer = setTimeout(look, FIRST_LOOK_MS).unref()

  return { stop () {
    clearTimeout(timer)
  } }

  function look () {
    const cpuMs = cpuMsOf(pid)
    if (cpuMs === null) return
    const at = now()
    if (cpuMs - before.cpuMs > IDLE_SHARE * (at - before.at)) idleSince = at
    before = { at, cpuMs }
    const isIdle = at - idleSince >= IDLE_MS
    if (told !== isIdle) onMessage({ type: 'active', resources: RESOURCES, isIdle })
    told = isIdle
    timer = setTimeout(look, LOOK_EVERY_MS).unref()
  }
}

function createCpuMeter () {
  const usage = createTreeUsage()
  return (pid: number) => usage.measure(pidsOf(pid))?.cpuMs ?? null
}
