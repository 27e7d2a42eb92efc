import path from 'node:path'
import { formatBytes } from '../../public/format.ts'
import { finding, inCode, type Check } from './finding.ts'
import { optionLine } from './option-line.ts'
import type { Facts } from './facts.ts'

const MIB = 1024 ** 2
const LOW_BYTES = 512 * MIB
const OUT_BYTES = 64 * MIB
const LOW_SHARE = 0.02

/** whether history, logs and releases are kept where they can be */
export const checkDisk: Check = (facts) => {
  const { disk, machine, running } = facts
  return [ofPlace(facts), ofSpace(facts), ...ofReleases(facts),
    ...disk.type === 'overlay' && machine.isContainer && disk.isRoot ? [ofContainer(facts)] : [],
    ...running?.historyProblem
      ? [finding('history', 'error', 'The history cannot be written', running.historyProblem)]
      : []]
}

function ofPlace (facts: Facts) {
  const { disk: { folder, type, isWritable } } = facts
  const elsewhere = elsewhereFor(facts)
  const mend = elsewhere === null ? [] : [optionLine(facts, { dataDir: elsewhere })]
  if (!isWritable)
    return finding('data-folder', 'error', `The data folder ${folder} cannot be written`,
      'History, logs and releases are kept there, and the next master finds the workers by it.', mend)
  if (type === 'network')
    return finding('data-folder', 'error', `The data folder ${folder} is on a network file system`,
      'SQLite cannot keep its write-ahead log there, so the history may be damaged, and two machines may run on it.',
      mend)
  if (type === 'memory')
    return finding('data-folder', 'warning', `The data folder ${folder} is in memory`,
      'History, tokens and releases are gone after a reboot, and take memory from the workers.', mend)
  return type === null
    ? finding('data-folder', 'unknown', `On which kind of disk the data folder ${folder} is, is not known here`)
    : finding('data-folder', 'ok', `The data folder ${folder} is on a disk of this machine`)
}

function elsewhereFor ({ home, name, disk: { folder } }: Facts): string | null {
  const elsewhere = home && path.join(home, '.local', 'state', 'clusterdeck-decks', name)
  return elsewhere === folder ? null : elsewhere
}

function ofSpace ({ disk: { folder, freeBytes, totalBytes, freeFiles, totalFiles } }: Facts) {
  const why = 'On a full disk nothing more is recorded, and a deploy cannot make its release.'
  const look = [
    inCode(`Remove what is not needed there; what takes the space: du -xh --max-depth=2 ${folder} | sort -h | tail`)
  ]
  if (freeBytes === null || totalBytes === null)
    return finding('disk', 'unknown', 'How much space is left for the data folder is not known here')
  if (freeBytes < OUT_BYTES)
    return finding('disk', 'error', `${formatBytes(freeBytes)} are left for the data folder`, why, look)
  if (freeFiles !== null && totalFiles !== null && freeFiles < totalFiles * LOW_SHARE)
    return finding('disk', 'warning', `${freeFiles} inodes are left for the data folder`, why, look)
  if (freeBytes < LOW_BYTES)
    return finding('disk', 'warning', `${formatBytes(freeBytes)} are left for the data folder`, why, look)
  return finding('disk', 'ok', `${formatBytes(freeBytes)} are left for the data folder`)
}

function ofReleases (facts: Facts) {
  const { config: { releases: { keep, mode } }, disk: { freeBytes }, running } = facts
  const each = running?.releaseBytes ?? null
  if (mode !== 'folder' || each === null || freeBytes === null) return []
  if (each * keep <= freeBytes)
    return [finding('kept-releases', 'ok', `${keep} releases of ${formatBytes(each)} have room`)]
  const fitting = Math.max(2, Math.floor(freeBytes / each / 2))
  return [
    finding('kept-releases', 'warning',
      `${keep} releases of ${formatBytes(each)} are kept, and ${formatBytes(freeBytes)} are left`,
      'When the disk is full, a deploy fails.', fitting < keep ? [optionLine(facts, { 'releases.keep': fitting })] : [])
  ]
}

function ofContainer ({ disk: { folder }, name }: Facts) {
  return finding('container-disk', 'warning', `The data folder ${folder} goes with the container`,
    'History, tokens and releases are gone when the container is replaced.', [
    inCode(`Give the container a volume there: docker run -v ${name}-deck:${folder}`)
  ])
}
