import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync,
  writeFileSync } from 'node:fs'
import net from 'node:net'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { loadSystemCalls } from '../../server/programs/system-calls.ts'
import { get } from '../support/asking.ts'
import { CLI, runCli } from '../support/deck.ts'
import { tempFolder } from '../support/folder.ts'
import { freePort } from '../support/ports.ts'
import { OTHER_UID } from '../support/stranger.ts'

const HIS = { uid: OTHER_UID, gid: OTHER_UID }
const APP =
  'require("http").createServer((_, response) => response.end([process.getuid(), process.getgroups(), process.env.OF_ROOT, process.env.OF_APP].join(" "))).listen(process.env.PORT, "127.0.0.1", () => console.log("serves"))'
const LINE = new URL('../../server/programs/root-line.ts', import.meta.url).href

/** A folder of another user, and a program that he runs there. */
async function startHis (t: TestContext) {
  const cwd = realpathSync(tempFolder())
  const at = (name: string) => path.join(cwd, name)
  const write = (name: string, text: string | number) => {
    writeFileSync(at(name), String(text), { mode: 0o755 })
    chownSync(at(name), OTHER_UID, OTHER_UID)
  }
  mkdirSync(at('pm2'))
  for (const folder of ['pm2', '.']) chownSync(at(folder), OTHER_UID, OTHER_UID)
  chmodSync(cwd, 0o755)
  write('app.cjs', APP)
  const port = await freePort()
  const child = spawn(process.execPath, ['app.cjs'], { cwd,
    env: { PATH: process.env.PATH, PORT: String(port), OF_APP: 'his' }, ...HIS, stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => {
    child.kill('SIGKILL')
  })
  await once(child.stdout, 'data')
  const env = { CLUSTERDECK_HOST_DIR: at('host'), CLUSTERDECK_RUNTIME_DIR: at('running'), CLUSTERDECK_ADMIN_PORT: '0',
    OF_ROOT: 'secret' }
  t.after(() => {
    spawnSync(process.execPath, [CLI, 'down', '--all'], { cwd, env: { ...process.env, ...env }, ...HIS })
  })
  return { cwd, at, write, pid: Number(child.pid), port,
    adopt: (words: string[], more = {}) =>
      runCli(['adopt', ...words, '--grace', '1s'], { cwd, env: { ...env, ...more } }) }
}

const canRead =
  spawnSync(process.execPath, ['-e', 'require("fs").readFileSync(process.argv[1])', CLI], { ...HIS, cwd: '/' })
    .status === 0
const skip = process.getuid?.() === 0 && loadSystemCalls() && canRead
  ? false
  : 'it takes root, and code that others can read'

test('what root takes over of another user runs as that user, without what root has', { skip }, async (t) => {
  const { cwd, at, port, adopt } = await startHis(t)
  const { code, stderr } = await adopt(['--port', String(port)])
  assert.equal(code, 0, stderr)
  assert.equal(await get(`http://127.0.0.1:${port}/`), `${OTHER_UID} ${OTHER_UID}  his`)
  assert.equal(existsSync(at('host')) && spawnSync('find', [cwd, '-user', 'root']).stdout.toString(), '')
})

test(
  'nothing that another user has written is read or run with a right of root, or gives him what he may not have himself',
  { skip },
  async (t) => {
    const { cwd, at, write, pid, adopt } = await startHis(t)
    const server = net.createServer().listen(0, '127.0.0.1')
    t.after(() => server.close())
    await once(server, 'listening')
    write('clusterdeck.config.mjs', `import { readFileSync, writeFileSync } from 'node:fs'
    import { lineToRoot } from ${JSON.stringify(LINE)}
    const line = lineToRoot({ CLUSTERDECK_ROOT_LINE: '1' })
    const copies = ${
      JSON.stringify(readdirSync(`/proc/${pid}/fd`).map(Number))
    }.filter((fd) => line.copyOf(${pid}, fd) >= 0).length
    const rights = readFileSync('/proc/self/status', 'utf8').match(/^Cap(Prm|Eff|Amb):\\s*0*[1-9a-f]/gm)
    writeFileSync('seen', JSON.stringify([process.getuid(), process.env.OF_ROOT ?? null, rights, copies, line.copyOf(${process.pid}, ${server._handle?.fd}), line.stop()]))
    export default { apps: { web: { entry: 'app.cjs' } } }`)
    write('pm2/pm2.pid', pid)
    write('pm2/pm2', `#!/bin/sh\ncat '${cwd}/list'\n`)
    write('list',
      JSON.stringify([{ name: 'web', pid: process.pid,
        pm2_env: { name: 'web', pm_id: 0, status: 'online', exec_mode: 'fork_mode', pm_cwd: cwd,
          pm_exec_path: at('app.cjs') } }]))
    const ofPm2 = async (home: string) =>
      (await adopt(['--pm2'], { PM2_HOME: home, PATH: `${at('pm2')}:${process.env.PATH}` })).stderr
    assert.match(await ofPm2(at('pm2')),
      new RegExp(
        `^clusterdeck: process ${process.pid}, which PM2 has for web, is not of the user of PM2 \\(uid ${OTHER_UID}\\)`,
        'm'
      ))
    assert.deepEqual(JSON.parse(readFileSync(at('seen'), 'utf8')), [OTHER_UID, null, null, 1, -1,
      'it is no service of the system'])
    rmSync(at('seen'))

    // A daemon that is another user's, and a way to it that others choose.
    write('pm2/pm2.pid', process.pid)
    assert.match(await ofPm2(at('pm2')),
      new RegExp(`pm2.pid belongs to uid ${OTHER_UID}, and names process ${process.pid} of uid 0`))
    const ofRoot = tempFolder()
    writeFileSync(path.join(ofRoot, 'pm2.pid'), String(process.pid))
    symlinkSync(ofRoot, at('way'))
    assert.match(await ofPm2(at('way')),
      /expected a PM2 whose folder and processes are of one user, but .* belongs to another user/)
    // Nor is a config file written as root where another user could put a link.
    rmSync(at('clusterdeck.config.mjs'))
    assert.match(await ofPm2(ofRoot),
      /--output: expected a working folder that only root and this user can write, but .* belongs to another user/)
    assert.deepEqual(['seen', 'clusterdeck.config.mjs', 'host'].map((name) => existsSync(at(name))), [false, false,
      false])
  }
)
