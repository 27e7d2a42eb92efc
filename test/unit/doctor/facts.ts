import { SCHEMA } from '../../../server/config/options.ts'
import { createSettings } from '../../../server/config/settings.ts'
import type { Facts } from '../../../server/doctor/facts.ts'

const GIB = 1024 ** 3

/** Of an app and a machine with which nothing is wrong, and what a test changes of them. */
export function soundFacts (
  { config: wanted = {}, machine, disk, files, running = {}, ...changes }: Partial<
    Omit<Facts, 'config' | 'machine' | 'disk' | 'files' | 'running'>
  > & { config?: Record<string, unknown>, machine?: Partial<Facts['machine']>, disk?: Partial<Facts['disk']>,
    files?: Partial<NonNullable<Facts['files']>>, running?: Partial<NonNullable<Facts['running']>> | null } = {}
): Facts {
  const config = { ...SCHEMA.parse({ releases: { mode: 'folder' }, ready: { path: '/health' }, ...wanted }),
    entry: '/srv/shop/app.js', cwd: '/srv/shop', dataDir: '/srv/shop/.clusterdeck', workers: 2 } as Facts['config']
  return { now: Date.parse('2026-11-01T00:00:00Z'), config, settings: createSettings(config, { key: 'key' }).list(),
    configFile: null, name: 'shop', home: '/home/ada', user: { isRoot: false, name: 'ada' },
    place: { mode: 'live', entry: config.entry, folder: config.cwd, cwd: config.cwd }, copyRefusal: null,
    package: { dependencies: [], engines: null }, ownNodeVersion: 'v24.99.0', nodeVersion: 'v24.99.0', hasNvm: false,
    canStick: true, port: null, ...changes,
    files: { data: [], environment: [], logs: [], healthPaths: [], code: '', isWhole: true, ...files },
    machine: { memory: { totalBytes: 8 * GIB, limitBytes: null }, descriptors: 524_288, isClockSynchronized: true,
      isContainer: false, firstProcess: 'systemd', hasSystemd: true,
      service: { name: 'shop.service', isOfUser: false, killMode: 'mixed', isEnabled: true, lingers: null },
      isInService: true, listeners: [], ...machine },
    disk: { folder: config.dataDir, isWritable: true, freeBytes: 40 * GIB, totalBytes: 80 * GIB, freeFiles: 1e6,
      totalFiles: 2e6, type: 'disk', isRoot: false, ...disk },
    running: running &&
      { health: { tone: 'ok', text: 'All 2 workers are ready', hint: '', about: null, reasons: [], problems: 0 },
        master: { version: '1.0.0', rssBytes: 60e6, isShared: false }, installedVersion: '1.0.0', isKept: true,
        desiredWorkers: 2, workers: [1, 2].map((pid) => ({ pid, rssBytes: 80e6, openConnections: 3 })), isServer: true,
        releaseMode: 'folder', historyProblem: null, written: null, cutOff: null, longestMs: 40, unanswered: [],
        release: 'r3', answers: [], serverErrors: { early: 0, later: 0 }, newestEventAt: null, releaseBytes: 1e6,
        ...running } }
}
