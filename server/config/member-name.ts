/** The name of a member of a fleet. It is a key of a bucket, and part of a subject and of a path. */
export const MEMBER_NAME = /^[A-Za-z\d][\w-]{0,99}$/

/** The name of a label of a member. */
export const LABEL_NAME = /^[\w.-]{1,60}$/
