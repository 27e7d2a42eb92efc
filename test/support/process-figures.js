import { readdirSync, readFileSync } from 'node:fs'

/** Exact, where the ticks of stat are 10 ms: sched-stats of the kernel. @param {number[]} pids @returns {number} ms of all their threads */
export function cpuMs (pids) {
  const tasks = pids.flatMap((pid) => readdirSync(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}/schedstat`))
  return sum(tasks.map((file) => Number(readFileSync(file, 'utf8').split(' ')[0]) / 1e6))
}

/** What they share with others counts in parts: PSS. @param {number[]} pids @returns {number} */
export function pssMegabytes (pids) {
  return sum(pids.map((pid) => kilobytes(pid, 'smaps_rollup', 'Pss') / 1024))
}

/** What would be free without them. @param {number[]} pids @returns {number} */
export function ownMegabytes (pids) {
  return sum(pids.flatMap((pid) => ['Private_Clean', 'Private_Dirty'].map((name) => kilobytes(pid, 'smaps_rollup', name) / 1024)))
}

/** @param {number} pid @param {string} file @param {string} name */
function kilobytes (pid, file, name) {
  return Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/${file}`, 'utf8'))?.[1])
}

/** @param {number[]} values */
function sum (values) {
  return values.reduce((total, value) => total + value, 0)
}
