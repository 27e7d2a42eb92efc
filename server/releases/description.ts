import { createHash } from 'node:crypto'
import { open, stat } from 'node:fs/promises'
import path from 'node:path'
import { readGit } from './git.ts'
import { readPackage } from './resolve.ts'

const LOCK_FILES = ['package-lock.json', 'npm-shrinkwrap.json', 'pnpm-lock.yaml', 'yarn.lock', 'bun.lock']
const MAX_LOCK_BYTES = 64 * 1024 * 1024
const PIECE_BYTES = 256 * 1024
const MAX_CHARS = 200

/**
 * Describes a folder of code, so that people can tell one release from another. Never fails: what it cannot read is
 * null. `folder`: a package folder; `options`: of git. Returns `lockFile`: `sha256:…` of the package manager's lock
 * file.
 */
export async function describeFolder (folder: string,
  options: { env: Record<string, string | undefined> }
): Promise<
  { package: { name: string | null, version: string | null } | null, git: Awaited<ReturnType<typeof readGit>>,
    lockFile: string | null }
> {
  const [content, git, lockFile] = await Promise.all([readPackage(folder), readGit(folder, options),
    digestLockFile(folder)])
  return { package: describePackage(content), git, lockFile }
}

/** `content`: of its package.json */
export function describePackage (
  content: Record<string, unknown> | null
): { name: string | null, version: string | null } | null {
  return content && { name: clipText(content.name), version: clipText(content.version) }
}

function clipText (value: unknown) {
  return typeof value === 'string' ? value.slice(0, MAX_CHARS) : null
}

async function digestLockFile (folder: string) {
  for (const name of LOCK_FILES) {
    try {
      const file = path.join(folder, name)
      const { size, isFile } = await stat(file).then((found) => ({ size: found.size, isFile: found.isFile() }))
      if (!isFile || size > MAX_LOCK_BYTES) continue
      return `sha256:${await digestFile(file)}`
    } catch {
      // ENOENT: the app has another package manager, or none.
    }
  }
  return null
}

/** In pieces, but by no stream: a start would wait until Node has loaded these. */
async function digestFile (file: string) {
  const hash = createHash('sha256')
  const handle = await open(file)
  try {
    const buffer = Buffer.allocUnsafe(PIECE_BYTES)
    for (let bytes = 1; bytes > 0;) {
      ;({ bytesRead: bytes } = await handle.read(buffer))
      hash.update(buffer.subarray(0, bytes))
    }
    return hash.digest('hex')
  } finally {
    await handle.close()
  }
}
