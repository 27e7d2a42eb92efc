import { quoteWord } from '../../public/command-text.ts'
import { asRoot, command } from './finding.ts'
import type { Service } from './machine.ts'

/**
 * The line that adds a setting to a unit, whoever has written that.
 * @param wanted `then`: what systemd has to do with the unit
 */
export function dropIn ({ name, isOfUser }: Service, user: { isRoot: boolean },
  { setting, file, then }: { setting: string, file: string, then?: string })
{
  const systemctl = systemctlOf({ isOfUser }, user)
  const folder = `${isOfUser ? '~/.config/systemd/user' : '/etc/systemd/system'}/${quoteWord(name)}.d`
  const install = `install -D -m 644 /dev/stdin ${folder}/${file}`
  return command(
    `printf '[Service]\\n${setting}\\n' | ${isOfUser ? install : asRoot(user, install)} && ${systemctl} daemon-reload${
      then ? ` && ${systemctl} ${then} ${quoteWord(name)}` : ''
    }`
  )
}

export function systemctlOf ({ isOfUser }: { isOfUser: boolean }, user: { isRoot: boolean }) {
  return isOfUser ? 'systemctl --user' : asRoot(user, 'systemctl')
}
