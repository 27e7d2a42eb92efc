import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fallbackFolders } from '../../server/system/fallback-folder.js'
import { findProcesses } from '../support/leftovers.js'

/** @typedef {ReturnType<typeof measureFootprint>} Footprint */

const MEGABYTE = 1024 * 1024
const KEEPER_MAY_GROW_BY = 20 * MEGABYTE
const MASTER_MAY_GROW_BY = 80 * MEGABYTE
/** A few come and go with requests to the admin port. */
const DESCRIPTORS_MAY_GROW_BY = 4

/**
 * What a deck takes of its machine.
 * @param {import('./site.js').Site} site while it serves, and nothing happens to it
 */
export function measureFootprint ({ deck, mark, temporary }) {
  return {
    processes: findProcesses(mark).length,
    keeper: { descriptors: countDescriptors(Number(deck.child.pid)), rssBytes: readRss(Number(deck.child.pid)) },
    master: { descriptors: countDescriptors(deck.masterPid), rssBytes: readRss(deck.masterPid) },
    // One per worker at most.
    orders: list(path.join(deck.folder, 'orders')).length,
    data: list(deck.folder).join(' '),
    elsewhere: [...list(temporary), ...fallbackFolders(deck.folder).filter((folder) => existsSync(folder))].join(' ')
  }
}

/** @param {Footprint} before @param {Footprint} after @returns {string[]} what has stayed that should have gone, in words */
export function findGrowth (before, after) {
  return [
    ...exceeds('processes', before.processes, after.processes),
    ...exceeds('descriptors of the keeper', before.keeper.descriptors, after.keeper.descriptors),
    ...exceeds('memory of the keeper', before.keeper.rssBytes + KEEPER_MAY_GROW_BY, after.keeper.rssBytes),
    ...exceeds('descriptors of the master', before.master.descriptors + DESCRIPTORS_MAY_GROW_BY, after.master.descriptors),
    ...exceeds('memory of the master', before.master.rssBytes + MASTER_MAY_GROW_BY, after.master.rssBytes),
    ...exceeds('orders to workers', before.processes, after.orders),
    ...(before.data === after.data ? [] : [`data folder: ${before.data} before, ${after.data} after`]),
    ...(before.elsewhere === after.elsewhere ? [] : [`temporary files: ${before.elsewhere} before, ${after.elsewhere} after`])
  ]
}

/** @param {string} what @param {number} most @param {number} received */
function exceeds (what, most, received) {
  return received <= most ? [] : [`${what}: expected at most ${most}, received ${received}`]
}

/** @param {number} pid */
function countDescriptors (pid) {
  return readdirSync(`/proc/${pid}/fd`).length
}

/** @param {number} pid */
function readRss (pid) {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
}

/** @param {string} folder */
function list (folder) {
  return existsSync(folder) ? readdirSync(folder).sort() : []
}
