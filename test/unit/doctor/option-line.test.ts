import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { configFileOf, loadConfig } from '../../../server/config/config.ts'
import { createSettings } from '../../../server/config/settings.ts'
import { optionLine } from '../../../server/doctor/option-line.ts'
import { tempFolder } from '../../support/folder.ts'

/** `name`: of a config file; `text`: its options, as they stand in it */
async function lineFor (name: string, text: string, wanted: Record<string, unknown>) {
  const folder = tempFolder()
  const file = path.join(folder, name)
  const write = (options: string) =>
    writeFileSync(file, name.endsWith('.json') ? `{ ${options} }` : `export default { ${options} }`)
  writeFileSync(path.join(folder, 'app.js'), '')
  write(text)
  const load = (isAgain: boolean) => loadConfig({ flags: { entry: 'app.js' }, env: {}, cwd: folder, isAgain })
  const config = await load(false)
  const line = optionLine({ settings: createSettings(config, { key: 'key' }).list(), configFile: configFileOf(config) },
    wanted)
  return { line, file, paste: async () => {
    write(`${text}, ${line.text}`)
    return await load(true)
  } }
}

test('an option that is pasted into the config file counts, and what the file has in the same group stays', async () => {
  const { line, file, paste } = await lineFor('clusterdeck.config.mjs', 'releases: { keep: 3 }, workers: 2', {
    'releases.mode': 'folder',
    'releases.shared': ['it\'s.db', '.env']
  })
  assert.deepEqual(line, { how: 'option',
    text: 'releases: { keep: 3, mode: \'folder\', shared: [\'it\\\'s.db\', \'.env\'] }', where: file })
  const { releases, workers } = await paste()
  assert.deepEqual([releases.mode, releases.keep, releases.shared, workers], ['folder', 3, ['it\'s.db', '.env'], 2])
})

test('a config file in JSON gets JSON', async () => {
  const { line, paste } = await lineFor('clusterdeck.config.json', '"ready": { "timeoutMs": 5000 }', {
    'ready.path': '/health',
    dispatch: 'sticky'
  })
  assert.equal(line.text, '"ready": {"timeoutMs":5000,"path":"/health"}, "dispatch": "sticky"')
  const { ready, dispatch } = await paste()
  assert.deepEqual([ready.timeoutMs, ready.path, dispatch], [5000, '/health', 'sticky'])
})

test('an app without a config file gets flags', () => {
  assert.deepEqual(
    optionLine({ settings: [], configFile: null }, { 'releases.mode': 'folder', 'drain.deadlineMs': 60_000 }),
    { how: 'flags', text: '--releases-mode folder --drain-deadline-ms 60000', where: 'clusterdeck start' }
  )
})

test('an option that a flag has set gets a flag, which counts more than a file', () => {
  const settings = [{ name: 'workers', value: 9, source: 'flag' as const, from: '--workers', default: 'max',
    description: '', expected: '', configured: null, unit: null, takesEffect: 'start' as const, isSecret: false,
    isUsed: true }]
  assert.equal(optionLine({ settings, configFile: '/srv/clusterdeck.config.mjs' }, { workers: 4 }).text, '--workers 4')
})
