import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { fallbackFolders } from '../../server/system/fallback-folder.ts'
import { findProcesses } from '../support/leftovers.ts'
import { countDescriptors, rssBytes } from '../support/process-figures.ts'
import type { Site } from './site.ts'

type Footprint = ReturnType<typeof measureFootprint>

const MEGABYTE = 1024 * 1024
const KEEPER_MAY_GROW_BY = 20 * MEGABYTE
const MASTER_MAY_GROW_BY = 80 * MEGABYTE
/** A few come and go with requests to the admin port. */
const DESCRIPTORS_MAY_GROW_BY = 4

/** What a deck takes of its machine. `site`: while it serves, and nothing happens to it. */
export function measureFootprint ({ deck, mark, temporary }: Site) {
  return {
    processes: findProcesses(mark).length,
    keeper: { descriptors: countDescriptors(Number(deck.child.pid)), rssBytes: rssBytes(Number(deck.child.pid)) },
    master: { descriptors: countDescriptors(deck.masterPid), rssBytes: rssBytes(deck.masterPid) },
    // One per worker at most.
    orders: list(path.join(deck.folder, 'orders')).length,
    data: list(deck.folder).join(' '),
    elsewhere: [...list(temporary), ...fallbackFolders(deck.folder).filter((folder) => existsSync(folder))].join(' ')
  }
}

/** @returns what has stayed that should have gone, in words */
export function findGrowth (before: Footprint, after: Footprint): string[] {
  return [...exceeds('processes', before.processes, after.processes),
    ...exceeds('descriptors of the keeper', before.keeper.descriptors, after.keeper.descriptors),
    ...exceeds('memory of the keeper', before.keeper.rssBytes + KEEPER_MAY_GROW_BY, after.keeper.rssBytes),
    ...exceeds('descriptors of the master', before.master.descriptors + DESCRIPTORS_MAY_GROW_BY,
      after.master.descriptors),
    ...exceeds('memory of the master', before.master.rssBytes + MASTER_MAY_GROW_BY, after.master.rssBytes),
    ...exceeds('orders to workers', before.processes, after.orders),
    ...(before.data === after.data ? [] : [`data folder: ${before.data} before, ${after.data} after`]),
    ...(before.elsewhere === after.elsewhere
      ? []
      : [`temporary files: ${before.elsewhere} before, ${after.elsewhere} after`])]
}

function exceeds (what: string, most: number, received: number) {
  return received <= most ? [] : [`${what}: expected at most ${most}, received ${received}`]
}

function list (folder: string) {
  return existsSync(folder) ? readdirSync(folder).sort() : []
}
