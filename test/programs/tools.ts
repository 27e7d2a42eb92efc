import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

export const INSTALLED = path.join(import.meta.dirname, '.installed')
const PATIENCE_MS = 10 * 60_000
const IS_ARM = process.arch === 'arm64'
const GNU = IS_ARM ? 'aarch64-linux-gnu' : 'x86_64-linux-gnu'
const PYTHON_PACKAGES = ['uvicorn', 'fastapi', 'gunicorn', 'hypercorn', 'granian', 'waitress', 'flask', 'django<6',
  'aiohttp', 'tornado', 'daphne', 'twisted', 'sanic']

/** What runs or builds programs of a language. */
type Tool = {
  /** a command */
  version: string[],
  /** as good as a user's own: variables with which it is found */
  install: () => Promise<Record<string, string>>
}

export const TOOLS: Record<
  'bun' | 'deno' | 'python' | 'puma' | 'webrick' | 'php' | 'nginx' | 'caddy' | 'go' | 'rust' | 'java' | 'maven' | 'c'
    | 'asio' | 'httplib' | 'perl' | 'dnsmasq' | 'node',
  Tool
> = {
  bun: { version: ['bun', '--version'],
    install: () => ofRegistry(`@oven/bun-linux-${IS_ARM ? 'aarch64' : 'x64'}`, 'bin') },
  deno: { version: ['deno', '--version'], install: () => ofRegistry(`@deno/linux-${process.arch}-glibc`, '.') },
  python: { version: ['python', '--version'], install: ofVirtualEnvironment },
  puma: { version: ['ruby', '-S', 'puma', '--version'], install: ofRuby },
  webrick: { version: ['ruby', '-r', 'webrick', '-e', 'puts WEBrick::VERSION'], install: ofRuby },
  php: { version: ['php', '--version'], install: () => ofDebian(['php-cli']) },
  nginx: { version: ['nginx', '-v'], install: () => ofDebian(['nginx-light']) },
  caddy: { version: ['caddy', 'version'], install: () => ofDebian(['caddy']) },
  go: { version: ['go', 'version'], install: ofThisMachine },
  rust: { version: ['cargo', '--version'], install: ofThisMachine },
  // The first version that it names is that of what it is about.
  maven: { version: ['grep', '<version>', 'pom.xml'], install: ofThisMachine },
  java: { version: ['java', '--version'], install: ofThisMachine },
  c: { version: ['gcc', '--version'], install: ofThisMachine },
  asio: { version: ['sh', '-c', 'grep "define ASIO_VERSION" $CPATH/asio/version.hpp'],
    install: () => ofDebian(['libasio-dev'], libraryFolders) },
  httplib: { version: ['sh', '-c', 'ls $LIBRARY_PATH'],
    install: () => ofDebian(['libcpp-httplib-dev'], libraryFolders) },
  perl: { version: ['starman', '--version'], install: () => ofDebian(['starman'], perlFolders) },
  dnsmasq: { version: ['dnsmasq', '--version'], install: () => ofDebian(['dnsmasq-base'], libraryFolders) },
  node: { version: ['node', '--version'], install: ofThisMachine }
}

/** @returns what it wrote */
export async function run ([file, ...args]: string[], cwd: string, env: Record<string, string> = {}): Promise<string> {
  try {
    const { stdout, stderr } = await promisify(execFile)(file, args, { cwd, env: { ...process.env, ...env },
      timeout: PATIENCE_MS, maxBuffer: 64 * 1024 * 1024 })
    return stdout + stderr
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string, stderr?: string }
    const words = `${stdout}${stderr}`.trim().split('\n').slice(-3).join(' ').slice(-300)
    throw new Error(`${file} failed: ${words || message}`, { cause: error })
  }
}

async function ofThisMachine () {
  return {}
}

/** `name`: of a package with a binary */
async function ofRegistry (name: string, bin: string) {
  const folder = path.join(INSTALLED, '.tools/npm')
  if (!existsSync(path.join(folder, 'node_modules', name))) {
    mkdirSync(folder, { recursive: true })
    await run(['npm', 'install', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error',
      name], folder)
  }
  return before(path.join(folder, 'node_modules', name, bin))
}

async function ofVirtualEnvironment () {
  const folder = path.join(INSTALLED, '.tools/python')
  const stamp = path.join(folder, '.stamp')
  const wanted = PYTHON_PACKAGES.join()
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== wanted) {
    mkdirSync(folder, { recursive: true })
    await run(['python3', '-m', 'venv', '.'], folder)
    await run(['bin/pip', 'install', '--quiet', '--disable-pip-version-check', ...PYTHON_PACKAGES], folder)
    writeFileSync(stamp, wanted)
  }
  return before(path.join(folder, 'bin'))
}

/** Unpacks packages with what they need and this machine has not, and installs none: none starts a service. */
async function ofDebian (names: string[], variables: (folder: string) => Record<string, string> = () => ({})) {
  const folder = path.join(INSTALLED, '.tools', names.join('-'))
  const stamp = path.join(folder, '.stamp')
  if (!existsSync(stamp)) {
    mkdirSync(folder, { recursive: true })
    const plan = await run(['apt-get', 'install', '--simulate', '--reinstall', '--no-install-recommends', ...names],
      folder)
    await run(['apt-get', 'download', '-o', 'APT::Sandbox::User=root',
      ...[...plan.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name)], folder)
    for (const file of readdirSync(folder).filter((name) => name.endsWith('.deb')))
      await run(['dpkg-deb', '--extract', file, '.'], folder)
    writeFileSync(stamp, '')
  }
  return { ...before(path.join(folder, 'usr/bin'), path.join(folder, 'usr/sbin'), linksOf(folder)),
    ...variables(folder) }
}

/** An installation makes `php` a link to `php8.2`. */
function linksOf (folder: string): string {
  const links = path.join(folder, 'links')
  const php = readdirSync(path.join(folder, 'usr'), { recursive: true }).map(String).find((file) =>
    /^bin\/php\d/.test(file)
  )
  mkdirSync(links, { recursive: true })
  if (php && !existsSync(path.join(links, 'php'))) symlinkSync(path.join(folder, 'usr', php), path.join(links, 'php'))
  return links
}

/** With all that comes with it: WEBrick, too. */
function ofRuby () {
  return ofDebian(['ruby', 'puma'], rubyFolders)
}

function rubyFolders (folder: string): Record<string, string> {
  const libraries = path.join(folder, 'usr/lib', GNU)
  const version = readdirSync(path.join(folder, 'usr/lib/ruby')).find((name) => /^\d/.test(name)) ?? ''
  return { LD_LIBRARY_PATH: libraries,
    RUBYLIB: ['vendor_ruby', version].flatMap((
      name
    ) => [path.join(folder, 'usr/lib/ruby', name), path.join(libraries, 'ruby', name),
      path.join(libraries, 'ruby', name, version)]
    ).join(':'),
    GEM_PATH: [path.join(libraries, 'rubygems-integration', version),
      path.join(folder, 'usr/share/rubygems-integration/all')].join(':') }
}

/** For compilers, and for what they have made. */
function libraryFolders (folder: string): Record<string, string> {
  const libraries = path.join(folder, 'usr/lib', GNU)
  return { CPATH: path.join(folder, 'usr/include'), LIBRARY_PATH: libraries, LD_LIBRARY_PATH: libraries }
}

function perlFolders (folder: string): Record<string, string> {
  const libraries = path.join(folder, 'usr/lib', GNU, 'perl5')
  return {
    PERL5LIB: [path.join(folder, 'usr/share/perl5'), ...readdirSync(libraries).map((version) =>
      path.join(libraries, version)
    )].join(':')
  }
}

function before (...folders: string[]): Record<string, string> {
  return { PATH: [...folders, process.env.PATH].join(path.delimiter) }
}
