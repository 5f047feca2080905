package volumes

import (
	"bufio"
	"os"
	"os/exec"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

// run executes one of the small tools that know loop devices and XFS best; its
// output is in the error, because the kubelet shows that to the user.
func run(name string, arguments ...string) (string, error) {
	line := name + " " + strings.Join(arguments, " ")
	output, err := exec.Command(name, arguments...).CombinedOutput()
	text := strings.TrimSpace(string(output))
	if err != nil {
		return "", status.Errorf(codes.Internal, "%s: %v: %s", line, err, text)
	}
	klog.Infof("%s: %s", line, text)
	return text, nil
}

func unmount(target string) error {
	if !mounted(target) {
		return nil
	}
	_, err := run("umount", target)
	return err
}

// mounted asks the mount table itself: stat cannot tell a bind mount.
func mounted(target string) bool {
	const mountPoint = 4 // fifth field, see proc_pid_mountinfo(5)
	table, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	defer table.Close()
	for lines := bufio.NewScanner(table); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > mountPoint && fields[mountPoint] == target {
			return true
		}
	}
	return false
}
