/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entry points of the commands.  Each lives in the folder that its subject lives in, parses its
 * own options with ig_cli_parse and returns an exit code.
 */
#ifndef INGOT_CMDS_H
#define INGOT_CMDS_H

int ig_cmd_convert(int argc, char **argv); /* convert/ */
int ig_cmd_export(int argc, char **argv);
int ig_cmd_show(int argc, char **argv);
int ig_cmd_verify(int argc, char **argv); /* verify/ */
int ig_cmd_sign(int argc, char **argv);
int ig_cmd_lineage(int argc, char **argv);
int ig_cmd_pin(int argc, char **argv);
int ig_cmd_manifest(int argc, char **argv);

int ig_cmd_ls(int argc, char **argv); /* store/ */
int ig_cmd_find(int argc, char **argv);
int ig_cmd_tag(int argc, char **argv);
int ig_cmd_rm(int argc, char **argv);
int ig_cmd_gc(int argc, char **argv);
int ig_cmd_reindex(int argc, char **argv);
int ig_cmd_load(int argc, char **argv); /* loader/ */
int ig_cmd_devices(int argc, char **argv);

#endif
