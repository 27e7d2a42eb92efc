import { readdirSync, readFileSync } from 'node:fs'

/** Exact, where the ticks of stat are 10 ms: sched-stats of the kernel. @returns ms of all their threads */
export function cpuMs (pids: number[]): number {
  const tasks = pids.flatMap((pid) =>
    readdirSync(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}/schedstat`)
  )
  return sum(tasks.map((file) => Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e6))
}

/** What they share with others counts in parts: PSS. */
export function pssMegabytes (pids: number[]): number {
  return sum(pids.map((pid) => fieldOf(pid, 'smaps_rollup', 'Pss') / 1024))
}

/** What would be free without them. */
export function ownMegabytes (pids: number[]): number {
  return sum(
    pids.flatMap((pid) => ['Private_Clean', 'Private_Dirty'].map((name) => fieldOf(pid, 'smaps_rollup', name) / 1024))
  )
}

/** `name`: of a number of proc_pid_status(5), such as PPid; of memory it is in kB */
export function statusOf (pid: number | undefined, name: string): number {
  return fieldOf(pid, 'status', name)
}

export function rssBytes (pid: number): number {
  return statusOf(pid, 'VmRSS') * 1024
}

export function countDescriptors (pid: number | undefined): number {
  return readdirSync(`/proc/${pid}/fd`).length
}

function fieldOf (pid: number | undefined, file: string, name: string) {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/${file}`, 'utf8'))?.[1])
}

function sum (values: number[]) {
  return values.reduce((total, value) => total + value, 0)
}
