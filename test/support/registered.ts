import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { identifyProcess } from '../../server/system/process-identity.ts'
import { tempFolder } from './folder.ts'
import type { RunningDeck } from '../../server/system/running-decks.ts'

/** A deck as its master registers it: a live one, with the token of its data folder. */
export function registered (fields: Partial<RunningDeck> = {}, token: string = 'token-of-the-other-deck'): RunningDeck {
  const dataDir = tempFolder()
  writeFileSync(path.join(dataDir, 'admin.token'), `${token}\n`, { mode: 0o600 })
  return { name: 'mail', entry: '/srv/mail/app.js', cwd: '/srv/mail', dataDir, configFile: null,
    adminUrl: 'http://127.0.0.1:1', fingerprint: null, version: '0.1.0', startedAt: '2026-01-31T12:00:00.000Z',
    master: identifyProcess(process.pid), keeper: null, ...fields }
}
