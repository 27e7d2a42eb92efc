import { readFileSync } from 'node:fs'

/**
 * Who is in a group, as far as the files of the system say, see group(5) and passwd(5): many systems give each user a
 * group of his own, and what it may write nobody else may.
 */

const ROOT = 0

/**
 * `uids`: the users who count as nobody else, beside root. Returns whether somebody else is in it, or could be: one
 * that no file names, and that this process is not in.
 */
export function hasOthers (gid: number, uids: readonly number[],
  { read = readTable, ownGroups = groupsOfThisProcess }: { read?: (file: string) => string,
    ownGroups?: () => readonly number[] } = {}): boolean
{
  if (gid === ROOT) return false
  const users = rowsOf(read('/etc/passwd')).map(([name, , uid, group]) => ({ name, uid: Number(uid),
    gid: Number(group) })
  )
  const named = rowsOf(read('/etc/group')).filter(([, , id]) => Number(id) === gid)
  const members = named.flatMap(([, , , names = '']) => names.split(',').filter(Boolean))
  const isOther = (uid: number | undefined) => uid !== ROOT && !uids.includes(uid as number)
  if (users.some((user) => user.gid === gid && isOther(user.uid))) return true
  if (members.some((name) => isOther(users.find((user) => user.name === name)?.uid))) return true
  return named.length === 0 && !ownGroups().includes(gid)
}

function rowsOf (table: string): string[][] {
  return table.split('\n').filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(':'))
}

function groupsOfThisProcess () {
  return [...(process.getgroups?.() ?? []), ...(process.getegid ? [process.getegid()] : [])]
}

function readTable (file: string) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // ENOENT: an image without users; the groups of this process count.
    return ''
  }
}
