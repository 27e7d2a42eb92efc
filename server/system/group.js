import { readFileSync } from 'node:fs'

/**
 * Who is in a group, as far as the files of the system say, see group(5) and passwd(5): many systems give each user a
 * group of his own, and what it may write nobody else may.
 */

const ROOT = 0

/**
 * @param {number} gid
 * @param {readonly number[]} uids the users who count as nobody else, beside root
 * @param {{ read?: (file: string) => string, ownGroups?: () => readonly number[] }} [system]
 * @returns {boolean} whether somebody else is in it, or could be: one that no file names, and that this process is not in
 */
export function hasOthers (gid, uids, { read = readTable, ownGroups = groupsOfThisProcess } = {}) {
  if (gid === ROOT) return false
  const users = rowsOf(read('/etc/passwd')).map(([name, , uid, group]) => ({ name, uid: Number(uid), gid: Number(group) }))
  const named = rowsOf(read('/etc/group')).filter(([, , id]) => Number(id) === gid)
  const members = named.flatMap(([, , , names = '']) => names.split(',').filter(Boolean))
  const isOther = (/** @type {number | undefined} */ uid) => uid !== ROOT && !uids.includes(/** @type {number} */ (uid))
  if (users.some((user) => user.gid === gid && isOther(user.uid))) return true
  if (members.some((name) => isOther(users.find((user) => user.name === name)?.uid))) return true
  return named.length === 0 && !ownGroups().includes(gid)
}

/** @param {string} table @returns {string[][]} */
function rowsOf (table) {
  return table.split('\n').filter((line) => line !== '' && !line.startsWith('#')).map((line) => line.split(':'))
}

function groupsOfThisProcess () {
  return [...(process.getgroups?.() ?? []), ...(process.getegid ? [process.getegid()] : [])]
}

/** @param {string} file */
function readTable (file) {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    // ENOENT: an image without users; the groups of this process count.
    return ''
  }
}
