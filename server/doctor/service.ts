import { dropIn, systemctlOf } from './drop-in.ts'
import { command, finding, inCode, type Check } from './finding.ts'
import { quoteWord } from '../../public/command-text.ts'
import type { Facts } from './facts.ts'
import type { Service } from './machine.ts'

/** A shell does not pass SIGTERM on. */
const SHELLS = Object.freeze(['sh', 'bash', 'dash', 'ash', 'busybox'])

/** whether the app comes back after a reboot, and a stop lets it drain */
export const checkService: Check = (facts) => {
  const { machine: { isContainer, hasSystemd, service, isInService, firstProcess }, running, config } = facts
  if (isContainer && !hasSystemd) {
    if (!running || firstProcess === null || !SHELLS.includes(firstProcess))
      return [finding('at-boot', 'ok', 'The container decides when the app starts')]
    return [
      finding('stop', 'warning', `Process 1 of the container is ${firstProcess}`,
        'A shell does not pass the signal of a container stop on, so all requests are cut off when its time is over.', [
        inCode('Let clusterdeck be process 1, with a list in the Dockerfile: CMD ["clusterdeck", "start"]')
      ])
    ]
  }
  if (!hasSystemd || !running)
    return [
      finding('at-boot', 'unknown', running
        ? 'What starts the app after a reboot is not known here'
        : 'What starts the app after a reboot is known once it runs')
    ]
  if (service) return ofService(facts, service)
  if (isInService)
    return [
      finding('at-boot', 'unknown', 'A service has started the app, and whether it does so after a reboot is not known')
    ]
  return [
    finding('at-boot', 'warning', 'Nothing starts the app after a reboot', 'Until somebody starts it, nobody answers.',
      [command(running.master.isShared ? 'clusterdeck install' : installLine(facts), config.cwd)])
  ]
}

function installLine ({ config, settings }: Facts) {
  const [entry] = settings.filter(({ name }) => name === 'entry')
  return entry?.source === 'file'
    ? 'clusterdeck adopt && clusterdeck install'
    : `clusterdeck install ${quoteWord(config.entry)}`
}

function ofService ({ user }: Facts, service: Service) {
  const { name, killMode, lingers } = service
  return [ofBoot(user, service),
    ...(killMode === null || killMode === 'mixed' || killMode === 'process'
      ? []
      : [
        finding('stop', 'error', `${name} has KillMode=${killMode}`,
          'A stop ends the workers at the same moment as the master, so they cannot answer what they have.', [
          dropIn(service, user, { setting: 'KillMode=mixed', file: 'kill-mode.conf' })
        ])
      ]),
    ...(lingers === false
      ? [
        finding('linger', 'error', 'The services of this user end with its last session',
          'The app stops when the user logs out, and does not start at boot.', [
          command(`loginctl enable-linger ${quoteWord(user.name)}`)
        ])
      ]
      : [])]
}

function ofBoot (user: Facts['user'], service: Service) {
  const { name, isEnabled } = service
  if (isEnabled === null) return finding('at-boot', 'unknown', `Whether ${name} starts at boot is not known`)
  if (isEnabled) return finding('at-boot', 'ok', `${name} starts at boot`)
  return finding('at-boot', 'warning', `${name} does not start at boot`,
    'After a reboot nobody answers until somebody starts it.', [
    command(`${systemctlOf(service, user)} enable ${quoteWord(name)}`)
  ])
}
