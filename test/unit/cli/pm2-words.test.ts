import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { startFakeHost } from '../../support/fake-host.ts'
import { tempFolder } from '../../support/folder.ts'

/** What somebody types who knows PM2, and what the command does or says. */
const TYPED: [line: string, code: number, said: RegExp][] = [
  ['list', 0, /^shop /m],
  ['describe shop', 0, /^app +shop$/m],
  ['stop all', 2, /received "all"; for all apps: clusterdeck stop --all$/],
  ['restart all', 2, /clusterdeck restart --all$/],
  ['logs all', 2, /clusterdeck logs --all$/],
  ['delete all', 2, /clusterdeck delete --all$/],
  ['start all', 2, /clusterdeck start --all$/],
  ['reload all', 2, /unknown command "reload"; clusterdeck deploy .*, clusterdeck restart /],
  ['monit', 2, /clusterdeck top /],
  ['save', 2, /the host remembers its apps$/],
  ['resurrect', 2, /clusterdeck host --detach /],
  ['startup systemd', 2, /clusterdeck install /],
  ['unstartup', 2, /clusterdeck uninstall /],
  ['flush', 2, /logs are rotated$/],
  ['show shop', 2, /clusterdeck describe /],
  ['kill', 2, /missing required argument "worker"; .* clusterdeck down --all /],
  ['start app.js -i max', 2, /unknown option "-i"; --workers /],
  ['start app.js --instances 4', 2, /--workers /],
  ['start ecosystem.config.js', 2, /received .*ecosystem\.config\.js, which is of PM2: clusterdeck import /],
  // As there.
  ['start none.js --name shop', 2, /^clusterdeck: entry: expected a file, received .*none\.js/]
]

test('What somebody types who comes from PM2 does the same, or the error names what does', async (t) => {
  const { cli, orders } = await startFakeHost(t, { shop: {} })
  const cwd = tempFolder()
  for (const file of ['app.js', 'ecosystem.config.js']) writeFileSync(path.join(cwd, file), '')
  for (const [line, expected, said] of TYPED) {
    const { code, stdout, stderr } = await cli(line, { cwd })
    assert.match(`${stdout}${stderr}`.trim(), said, line)
    assert.equal(code, expected, line)
  }
  assert.deepEqual(orders(), [])
})
