import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { tempFolder } from './folder.ts'
import { get } from './asking.ts'
import { freePort } from './ports.ts'
import { until } from './until.ts'
import type { TestOwner } from './deck.ts'

/** The real nginx and Caddy: those of this machine, or of Debian, by .ci/proxies. */
export const PROXIES = ['nginx', 'caddy'] as const
export type ProxyName = typeof PROXIES[number]

const OWN = path.resolve(import.meta.dirname, '../../.ci/.installed')

function find (name: ProxyName): string | undefined {
  return [...String(process.env.PATH).split(path.delimiter), '/usr/sbin', `${OWN}/usr/sbin`, `${OWN}/usr/bin`].map((
    folder
  ) => path.join(folder, name)).find((file) => existsSync(file))
}

/** Why the tests with it are skipped; false: they are not. */
export function without (name: ProxyName): string | false {
  return find(name) === undefined && `no ${name}: .ci/proxies gets it`
}

/** Whether a configuration is one, by the proxy itself. Returns what is wrong; empty: nothing. */
export function complaintsOf (name: ProxyName, configuration: string): string {
  const file = writeConfiguration(name, configuration, 80)
  const { status, stderr } = spawnSync(String(find(name)), wordsFor(name, file, { isCheck: true }), { encoding: 'utf8',
    env: environment() })
  return status === 0 ? '' : stderr
}

/** Runs it with a configuration that clusterdeck has printed for port 80, on another port. Returns its address. */
export async function startProxy (t: TestOwner, name: ProxyName, configuration: string): Promise<string> {
  const port = await freePort()
  const child = spawn(String(find(name)), wordsFor(name, writeConfiguration(name, configuration, port)), {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: environment()
  })
  const ended = once(child, 'exit')
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  t.after(async () => {
    child.kill('SIGTERM')
    await ended
  })
  const url = `http://127.0.0.1:${port}`
  await until(() => get(url).then(() => true, () => false), () => `${name} to answer: ${output.slice(-2000)}`)
  return url
}

function writeConfiguration (name: ProxyName, configuration: string, port: number): string {
  const folder = tempFolder()
  const file = path.join(folder, name)
  const own = name === 'nginx'
    ? configuration.replaceAll('listen 80;', `listen 127.0.0.1:${port};`).replaceAll('listen [::]:80;', '')
    : configuration.replaceAll(/^:80 /gm, `http://:${port} `)
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  writeFileSync(file, name === 'nginx'
    ? `daemon off;
pid ${folder}/pid;
error_log stderr;
${process.getuid?.() === 0 ? 'user root;' : ''}
events {}
http {
access_log off;
${paths.map((each) => `${each}_temp_path ${folder}/${each};`).join('\n')}
${own}
}`
    : `{\n  admin off\n  default_bind 127.0.0.1\n}\n${own}`)
  return file
}

function wordsFor (name: ProxyName, file: string, { isCheck = false } = {}): string[] {
  if (name === 'nginx') return [...(isCheck ? ['-t'] : []), '-e', 'stderr', '-c', file, '-p', path.dirname(file)]
  return [isCheck ? 'validate' : 'run', '--adapter', 'caddyfile', '--config', file]
}

/** Caddy writes certificates into the home of its user. */
function environment () {
  const folder = tempFolder()
  return { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
}
